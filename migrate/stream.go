package migrate

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// stream is the commits of one key, as they are read.
type stream struct {
	r       *auditor
	c       candidate
	sum     *ordered
	source  es.AggregateID // as the layout wrote it
	target  es.AggregateID
	first   es.AggregateID // as the first document says
	foreign int64
	// requests are those of the commits; true = the set beside the stream has it too.
	requests map[fingerprint]bool
	total    unordered
	own      unordered // the set beside the stream
	lost     int64     // members of it that no commit has
	lostOne  string
	problems map[Code]*Problem
	order    []Code
}

func (r *auditor) newStream(c candidate) *stream {
	return &stream{r: r, c: c, sum: newOrdered(), requests: map[fingerprint]bool{}, problems: map[Code]*Problem{}}
}

// read takes what was fetched, or fetches it by pages.
func (s *stream) read(ctx context.Context, got content, large bool) error {
	if !large {
		s.add(got.members.Val())
		s.compare(got.set.Val())
		return nil
	}
	count, err := do(ctx, s.r.server, func() (int64, error) { return s.r.rdb.ZCard(ctx, s.c.key).Result() })
	if err != nil {
		return err
	}
	size := s.c.size
	if size == unknownSize {
		size = count * costBytes
	}
	err = s.r.pages(ctx, s.c.key, count, size, func(page []redis.Z) error {
		before := s.sum.bytes
		s.add(page)
		return s.r.meter.passed(ctx, 0, s.sum.bytes-before)
	})
	if err != nil || s.c.own == 0 {
		return err
	}
	return s.r.scanSet(ctx, s.c.key+requestsSuffix, func(page []string) error {
		s.compare(page)
		return nil
	})
}

func (s *stream) add(page []redis.Z) {
	for i := range page {
		s.commit(member(page[i]), page[i].Score)
	}
}

func (s *stream) commit(text string, score float64) {
	s.sum.add(text, score)
	c, err := codec.DecodeCommit(bytesOf(text))
	if err != nil {
		if foreign(text) {
			s.foreign++
		}
		s.blame(Unreadable, "score %v: %v", score, err)
		return
	}
	if s.target.ID == "" {
		s.first = c.Aggregate
		s.identify(c.Aggregate)
	} else if c.Aggregate != s.first {
		s.blame(WrongIdentity, "score %v is a commit of %s", score, c.Aggregate)
	}
	if score != float64(c.Version) {
		s.blame(ScoreVersion, "score %v is version %d", score, c.Version)
	}
	if score != float64(s.sum.count) {
		s.blame(Gap, "version %d has score %v", s.sum.count, score)
	}
	p := fingerprintOf(c.RequestID)
	if _, ok := s.requests[p]; !ok {
		s.requests[p] = false
		s.total.addFingerprint(p, len(c.RequestID))
	}
}

func (s *stream) identify(doc es.AggregateID) {
	var ok bool
	s.source, s.target, ok = s.r.resolve(s.c.found, doc)
	if ok {
		ok = legacy.EventsKey(era(s.c.found.Eras), s.source) == s.c.key
	}
	if !ok {
		s.blame(WrongIdentity, "it holds commits of %s", doc)
	} else if err := s.target.Validate(); err != nil {
		s.blame(Unreadable, "%v", err)
	}
}

// era is the era whose names the key of a stream has.
func era(found legacy.Eras) legacy.Eras {
	if found&legacy.C != 0 {
		return legacy.B // both wrote the same
	}
	return found
}

// compare meets the set of requests that stands beside the stream.
func (s *stream) compare(set []string) {
	for _, id := range set {
		p := fingerprintOf(id)
		s.own.addFingerprint(p, len(id))
		if _, ok := s.requests[p]; ok {
			s.requests[p] = true
			continue
		}
		if s.lost++; s.lost == 1 {
			s.lostOne = id
		}
	}
}

// blame adds a problem; of each code the first one stands for all of the key.
func (s *stream) blame(code Code, format string, args ...any) {
	if s.problems[code] == nil {
		p := s.r.problem(code, s.c.key, fmt.Sprintf(format, args...))
		s.problems[code] = &p
		s.order = append(s.order, code)
	}
}

// record is what has been read.
func (s *stream) record() *record {
	if s.foreign == s.sum.count {
		return s.r.untouched(s.r.problem(Foreign, s.c.key, "its members are no documents of Wow's"))
	}
	rec := s.c.record()
	rec.Era = s.era().String()
	rec.Count, rec.Bytes, rec.Sum = s.sum.count, s.sum.bytes, s.sum.sum()
	rec.Requests, rec.RequestSum = int64(len(s.requests)), s.total.sum()
	if s.target.ID != "" {
		rec.Aggregate = identityOf(s.target)
		rec.Target = rediskey.Stream(s.target)
	}
	s.judgeRequests()
	for _, code := range s.order {
		if slices.Contains(unloadable, code) {
			rec.Left, rec.Target = true, ""
		}
		rec.Problems = append(rec.Problems, *s.problems[code])
	}
	return rec
}

// era tells B from C by the sets that there are: B had one for each stream, C one for
// each type, and a store that was upgraded has both.
func (s *stream) era() legacy.Eras {
	if s.c.found.Eras&legacy.C == 0 {
		return s.c.found.Eras
	}
	switch shared := s.shared(); {
	case shared && s.own.count == 0:
		return legacy.C
	case !shared:
		return legacy.B
	}
	return legacy.B | legacy.C
}

func (s *stream) shared() bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return s.c.found.Eras&legacy.C != 0 && s.r.stem(s.c.found.Stem).shared
}

func (s *stream) judgeRequests() {
	if s.lost > 0 {
		s.blame(RequestWithoutEvent, "%d request ids that no commit has, such as %q", s.lost, s.lostOne)
	}
	missing := 0
	for _, has := range s.requests {
		if !has {
			missing++
		}
	}
	if missing == 0 || s.shared() {
		return // era C's set is compared when all commits are known
	}
	s.blame(EventWithoutRequest, "%d commits' request ids are not in their set", missing)
	if s.c.found.Eras != legacy.D {
		s.problems[EventWithoutRequest].Blocks = false
	}
}

// beside is the record of the set beside the stream.
func (s *stream) beside(of *record) *record {
	if s.own.count == 0 || of.Kind == "" {
		return nil
	}
	rec := &record{Key: s.c.key + requestsSuffix, Kind: legacy.Requests, Era: of.Era, Stem: of.Stem, Aggregate: of.Aggregate, Left: of.Left}
	if era(s.c.found.Eras) == legacy.B {
		rec.Era = legacy.B.String()
	}
	rec.Count, rec.Bytes, rec.Sum = s.own.count, s.own.bytes, s.own.sum()
	return rec
}

// loneRequests is a set whose stream is not there.
func (r *auditor) loneRequests(ctx context.Context, c candidate, got content, large bool) (*record, error) {
	var u unordered
	add := func(page []string) error {
		for _, id := range page {
			u.add(id)
		}
		return nil
	}
	if !large {
		_ = add(got.set.Val()) // it returns no error
	} else if err := r.scanSet(ctx, c.key, add); err != nil {
		return nil, err
	}
	rec := c.record()
	rec.Count, rec.Bytes, rec.Sum = u.count, u.bytes, u.sum()
	rec.Problems = append(rec.Problems, r.problem(RequestWithoutEvent, c.key, fmt.Sprintf("%d request ids of an aggregate without commits", u.count)))
	return rec, nil
}
