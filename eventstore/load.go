package eventstore

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// A page is as many commits as fill about pageBytes, by the average of the one before.
// So the memory that loading takes does not depend on the history's length, and hardly
// on its commits' size once the first page is through.
const (
	firstPage = 100
	maxPage   = 1000
	pageBytes = 1 << 20
)

// Load implements [es.Loader]. It reads pages of about 1 MiB, of 1,000 commits at most.
func (s *Store) Load(ctx context.Context, id es.AggregateID, r es.Versions) iter.Seq2[es.Commit, error] {
	return func(yield func(es.Commit, error) bool) {
		next, err := s.load(ctx, id, r, yield)
		if err != nil {
			yield(es.Commit{}, fail("load", id, next, "", err))
		}
	}
}

// load yields commits until the range, the stream or the caller's interest ends. It
// returns the version that it was at.
func (s *Store) load(ctx context.Context, id es.AggregateID, r es.Versions, yield func(es.Commit, error) bool) (int, error) {
	next := max(r.From, 1)
	if err := id.Validate(); err != nil {
		return r.From, err
	}
	if r.From < 0 || r.To < 0 || r.To > 0 && r.To < next {
		return r.From, es.Invalid("versions %d to %d", r.From, r.To)
	}
	end := "+inf"
	if r.To > 0 {
		end = strconv.Itoa(r.To)
	}
	key := rediskey.Stream(id)
	for got := s.fetch(ctx, key, next, end, firstPage); ; {
		if got.err != nil {
			return next, got.err
		}
		full := len(got.members) == got.size
		var coming chan page
		if full { // the next page comes while this one is handled
			coming = make(chan page, 1)
			go func(from, size int) { coming <- s.fetch(ctx, key, from, end, size) }(next+got.size, got.following())
		}
		for _, member := range got.members {
			c, err := s.decode(id, member)
			if err != nil {
				return next, err
			}
			if c.Version != next {
				return next, es.Corrupt("version %d stands where version %d is due", c.Version, next)
			}
			if !yield(c, nil) {
				return next, nil
			}
			next++
		}
		if full {
			got = <-coming
			continue
		}
		if next > r.To {
			return next, nil
		}
		if more, err := s.follows(ctx, id, next); err != nil || !more {
			return next, err
		}
		got = s.fetch(ctx, key, next, end, firstPage) // it was appended meanwhile
	}
}

// page is what was read of a stream: size commits, or fewer at its end.
type page struct {
	members []string
	size    int
	err     error
}

// following is the size of the page after a full one.
func (p page) following() int {
	bytes := 1
	for _, m := range p.members {
		bytes += len(m)
	}
	return min(max(pageBytes*p.size/bytes, 1), maxPage)
}

func (s *Store) fetch(ctx context.Context, key string, from int, to string, size int) page {
	members, err := do(ctx, s, func() ([]string, error) {
		return s.rdb.ZRangeByScore(ctx, key, &redis.ZRangeBy{Min: strconv.Itoa(from), Max: to, Count: int64(size)}).Result()
	})
	return page{members, size, err}
}

// follows says whether version next is stored. Where it is not, and a later one is, a
// range that was cut short did not end with the stream, but before a gap.
func (s *Store) follows(ctx context.Context, id es.AggregateID, next int) (bool, error) {
	beyond, err := do(ctx, s, func() ([]redis.Z, error) {
		by := &redis.ZRangeBy{Min: strconv.Itoa(next), Max: "+inf", Count: 1}
		return s.rdb.ZRangeByScoreWithScores(ctx, rediskey.Stream(id), by).Result()
	})
	if err != nil || len(beyond) == 0 {
		return false, err
	}
	if beyond[0].Score != float64(next) { // a document may name any version
		return false, es.Corrupt("version %v stands where version %d is due", beyond[0].Score, next)
	}
	return true, nil
}

// decode reads a member, which must be of the aggregate under whose key it stands.
// A body's own method, or an upcaster, may panic: on whatever goroutine, that is an error.
func (s *Store) decode(id es.AggregateID, member string) (c es.Commit, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: decoding: %v\n%s", es.ErrPanic, p, debug.Stack())
		}
	}()
	// The codec only looks at what it is given (see [es.Codec]), so no copy is made of it.
	c, err = s.codec.DecodeCommit(unsafe.Slice(unsafe.StringData(member), len(member))) //nolint:gosec // read only
	if err != nil {
		return c, err
	}
	if c.Aggregate.ID != id.ID || c.Aggregate.Tenant != id.Tenant || c.Aggregate.Type.Name != id.Type.Name || c.Aggregate.Type.Context != id.Type.Context {
		return c, es.Corrupt("a commit of %s stands under this aggregate's key", c.Aggregate)
	}
	return c, nil
}

// LoadAt yields the commits that the aggregate had at time t: the longest run from the
// first on whose create times are no later than t.
func (s *Store) LoadAt(ctx context.Context, id es.AggregateID, t time.Time) iter.Seq2[es.Commit, error] {
	return func(yield func(es.Commit, error) bool) {
		for c, err := range s.Load(ctx, id, es.Versions{}) {
			if err == nil && c.CreateTime.After(t) || !yield(c, err) {
				return
			}
		}
	}
}

// Last implements [es.Finder].
func (s *Store) Last(ctx context.Context, id es.AggregateID) (es.Commit, error) {
	page, err := s.newest(ctx, id, 0, 1)
	if err == nil && len(page) == 0 {
		err = es.ErrNotFound
	}
	if err != nil {
		return es.Commit{}, fail("last", id, 0, "", err)
	}
	c, err := s.decode(id, page[0])
	return c, fail("last", id, 0, "", err)
}

// Find implements [es.Finder].
func (s *Store) Find(ctx context.Context, id es.AggregateID, version int) (es.Commit, error) {
	if version < 1 {
		return es.Commit{}, fail("find", id, version, "", es.Invalid("version %d is below 1", version))
	}
	found, missing := es.Commit{}, es.ErrNotFound
	_, err := s.load(ctx, id, es.Versions{From: version, To: version}, func(c es.Commit, _ error) bool {
		found, missing = c, nil
		return true // to the end, so that a second commit of this version is seen
	})
	if err == nil {
		err = missing
	}
	return found, fail("find", id, version, "", err)
}

// HasRequest says whether a commit of the request id is stored; it costs one look.
func (s *Store) HasRequest(ctx context.Context, id es.AggregateID, requestID string) (bool, error) {
	if err := id.Validate(); err != nil {
		return false, fail("find request", id, 0, requestID, err)
	}
	known, err := do(ctx, s, func() (bool, error) {
		return s.rdb.SIsMember(ctx, rediskey.Requests(id), requestID).Result()
	})
	return known, fail("find request", id, 0, requestID, err)
}

// FindRequest implements [es.Finder]. A request id that is known although no commit
// has it is an [es.ErrCorrupt].
func (s *Store) FindRequest(ctx context.Context, id es.AggregateID, requestID string) (es.Commit, error) {
	known, err := s.HasRequest(ctx, id, requestID)
	if err != nil {
		return es.Commit{}, err
	}
	if !known {
		return es.Commit{}, fail("find request", id, 0, requestID, es.ErrNotFound)
	}
	c, err := s.findRequest(ctx, id, requestID)
	if err == nil && s.Replicas > 0 {
		err = s.confirm(ctx, rediskey.Stream(id))
	}
	return c, fail("find request", id, 0, requestID, err)
}

func (s *Store) findRequest(ctx context.Context, id es.AggregateID, requestID string) (es.Commit, error) {
	const size = 50
	for rank := 0; ; rank += size {
		page, err := s.newest(ctx, id, rank, size)
		if err != nil {
			return es.Commit{}, err
		}
		for _, member := range page {
			if plain(requestID) && !strings.Contains(member, requestID) {
				continue // spares decoding most of them
			}
			c, err := s.decode(id, member)
			if err != nil || c.RequestID == requestID {
				return c, err
			}
		}
		if len(page) < size {
			return es.Commit{}, es.Corrupt("the request id is known and no commit has it")
		}
	}
}

// newest are count members, backwards from the one at a rank.
func (s *Store) newest(ctx context.Context, id es.AggregateID, rank, count int) ([]string, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	page, err := do(ctx, s, func() ([]string, error) {
		return s.rdb.ZRevRange(ctx, rediskey.Stream(id), int64(rank), int64(rank+count-1)).Result()
	})
	return page, err
}

// plain reports text that no codec writes in another form.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	return true
}
