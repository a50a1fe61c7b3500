package migrate

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// settlePause is the time between two looks at a cluster whose slots are moving.
const settlePause = 200 * time.Millisecond

type deadline time.Time

func newDeadline(after time.Duration) deadline { return deadline(time.Now().Add(after)) }

func (d deadline) over() bool { return time.Now().After(time.Time(d)) }

// pipeline sends what fill queues in one round trip, and again where the server says
// that it will not be long. An error that a command has of its own is left to whoever
// reads that command.
func (s server) pipeline(ctx context.Context, fill func(p redis.Pipeliner)) error {
	_, err := redisrun.Do(ctx, s.pace.Patience, func() ([]redis.Cmder, error) {
		return s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			fill(p)
			return nil
		})
	})
	var reply redis.Error
	if errors.Is(err, redis.Nil) || errors.As(err, &reply) && !errors.Is(err, es.ErrUnavailable) {
		return nil
	}
	return s.blame(ctx, err)
}

// do is [redisrun.Do] that names the server.
func do[T any](ctx context.Context, s server, f func() (T, error)) (T, error) {
	reply, err := redisrun.Do(ctx, s.pace.Patience, f)
	if errors.Is(err, redis.Nil) {
		return reply, err
	}
	return reply, s.blame(ctx, err)
}

// explain is the error of one command of a pipeline.
func (s server) explain(ctx context.Context, err error) error {
	return s.blame(ctx, redisrun.Explain(err))
}

// pageBytes is what one round trip reads, about: others wait no longer than for this.
const pageBytes = 256 << 10

// pages calls f with the members of a ZSET in their order, a page at a time. size is
// what MEMORY USAGE or a manifest says of the key, count how many members there are.
func (s server) pages(ctx context.Context, key string, count, size int64, f func([]redis.Z) error) error {
	return s.pagesOf(ctx, s.rdb, key, count, size, f)
}

func (s server) pagesOf(ctx context.Context, rdb redis.Cmdable, key string, count, size int64, f func([]redis.Z) error) error {
	step := pageSize(count, size)
	for from := int64(0); ; {
		page, err := do(ctx, s, func() ([]redis.Z, error) {
			return rdb.ZRangeWithScores(ctx, key, from, from+step-1).Result()
		})
		if err != nil {
			return err
		}
		if err := f(page); err != nil {
			return err
		}
		if int64(len(page)) < step {
			return nil
		}
		from += int64(len(page))
		var bytes int64
		for i := range page {
			bytes += int64(len(member(page[i])))
		}
		step = pageSize(int64(len(page)), bytes)
	}
}

func pageSize(count, size int64) int64 {
	return min(max(pageBytes*count/max(size, 1), 1), 1000)
}

// scanSet calls f with each member of a SET once, a page at a time.
func (s server) scanSet(ctx context.Context, key string, f func([]string) error) error {
	return s.scanSetOf(ctx, s.rdb, key, f)
}

func (s server) scanSetOf(ctx context.Context, rdb redis.Cmdable, key string, f func([]string) error) error {
	seen := map[fingerprint]struct{}{}
	for cursor := uint64(0); ; {
		type page struct {
			members []string
			next    uint64
		}
		got, err := do(ctx, s, func() (p page, err error) {
			p.members, p.next, err = rdb.SScan(ctx, key, cursor, "", 1000).Result()
			return p, err
		})
		if err != nil {
			return err
		}
		fresh := got.members[:0]
		for _, m := range got.members {
			p := fingerprintOf(m)
			if _, ok := seen[p]; !ok {
				seen[p] = struct{}{}
				fresh = append(fresh, m)
			}
		}
		if err := f(fresh); err != nil {
			return err
		}
		if cursor = got.next; cursor == 0 {
			return nil
		}
	}
}
