package eventstore

import (
	"cmp"
	"container/heap"
	"context"
	"iter"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// Scan implements [es.Scanner]. Purged ids are left out. It keeps a page of each of the
// 128 buckets in memory, 16 in flight at first, whatever the number of aggregates;
// after a break it goes on from the last id that was yielded. A member of the index that
// is no id is an [es.ErrCorrupt], after which the sequence goes on where the caller does. An aggregate that is
// created meanwhile may be missed.
func (s *Store) Scan(ctx context.Context, t es.AggregateType, after string) iter.Seq2[es.AggregateID, error] {
	return func(yield func(es.AggregateID, error) bool) {
		if err := s.scan(ctx, t, after, yield); err != nil {
			yield(es.AggregateID{}, fail("scan "+t.String(), es.AggregateID{}, 0, "", err))
		}
	}
}

func (s *Store) scan(ctx context.Context, t es.AggregateType, after string, yield func(es.AggregateID, error) bool) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if after != "" {
		if err := t.ID(after).Validate(); err != nil {
			return err
		}
	}
	const inFlight = 16
	merged := make(buckets, 0, rediskey.Buckets)
	for b := 0; b < rediskey.Buckets; b += inFlight {
		group := make([]*bucket, inFlight)
		for i := range group {
			group[i] = &bucket{number: b + i, lower: rediskey.After(after), size: 16}
		}
		if err := s.fill(ctx, t, group...); err != nil {
			return err
		}
		for _, b := range group {
			if len(b.members) > 0 {
				merged = append(merged, b)
			}
		}
	}
	heap.Init(&merged)
	for len(merged) > 0 {
		b := merged[0]
		id, tenant, err := rediskey.ParseMember(b.members[0])
		found := t.ID(id).InTenant(tenant)
		if err != nil {
			found, err = es.AggregateID{}, fail("scan "+t.String(), es.AggregateID{}, 0, "", err)
		}
		if !yield(found, err) {
			return nil
		}
		if b.members = b.members[1:]; len(b.members) == 0 && !b.ended {
			if err := s.fill(ctx, t, b); err != nil {
				return err
			}
		}
		if len(b.members) == 0 {
			heap.Pop(&merged)
		} else {
			heap.Fix(&merged, 0)
		}
	}
	return nil
}

// bucket is one bucket's ids, read page by page.
type bucket struct {
	number  int
	lower   string   // bound of the next page
	size    int      // of the next page; small at first, as most scans end soon
	members []string // what was read and not yielded
	ended   bool
}

// fill reads the next page of each bucket in one round trip (and a second one where
// ids were purged), until each has something left to yield or has ended.
func (s *Store) fill(ctx context.Context, t es.AggregateType, group ...*bucket) error {
	pages := make([]*redis.StringSliceCmd, len(group))
	purged := make([]*redis.IntCmd, len(group))
	_, err := do(ctx, s, func() ([]redis.Cmder, error) {
		return s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, b := range group {
				pages[i] = p.ZRangeByLex(ctx, rediskey.Index(t, b.number), &redis.ZRangeBy{Min: b.lower, Max: "+", Count: int64(b.size)})
				purged[i] = p.Exists(ctx, rediskey.Purged(t, b.number))
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	for i, b := range group {
		b.members = pages[i].Val()
		b.ended = len(b.members) < b.size
		b.size = min(2*b.size, 256)
		if len(b.members) > 0 {
			b.lower = "(" + b.members[len(b.members)-1]
		}
		if purged[i].Val() > 0 && len(b.members) > 0 {
			if err := s.hidePurged(ctx, t, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// hidePurged takes out of a page what has a tombstone, and reads on if that was all.
func (s *Store) hidePurged(ctx context.Context, t es.AggregateType, b *bucket) error {
	marks, err := do(ctx, s, func() ([]any, error) {
		return s.rdb.HMGet(ctx, rediskey.Purged(t, b.number), b.members...).Result()
	})
	if err != nil {
		return err
	}
	kept := b.members[:0]
	for i, m := range b.members {
		if marks[i] == nil {
			kept = append(kept, m)
		}
	}
	b.members = kept
	if len(kept) == 0 && !b.ended {
		return s.fill(ctx, t, b)
	}
	return nil
}

// buckets is a heap by the first id that each has left.
type buckets []*bucket

func (h buckets) Len() int           { return len(h) }
func (h buckets) Less(i, j int) bool { return cmp.Less(h[i].members[0], h[j].members[0]) }
func (h buckets) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface]; buckets only ever leave.
func (h *buckets) Push(x any) { *h = append(*h, x.(*bucket)) } //nolint:forcetypeassert // never another type

// Pop implements [heap.Interface].
func (h *buckets) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
