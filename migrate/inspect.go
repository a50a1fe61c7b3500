package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/legacy"
)

// candidate is a key whose name is that of an era.
type candidate struct {
	key   string
	found legacy.Found
	// size is about how many bytes the key holds, and the set of requests beside it.
	size, own int64
	// count is the cardinality, where only that was asked for.
	count    int64
	problems []Problem
}

// batchKeys is how many keys share a round trip.
const batchKeys = 128

// inspect makes the records of keys.
func (r *auditor) inspect(ctx context.Context, batch []candidate) error {
	batch, others, err := r.measure(ctx, batch)
	if err != nil {
		return err
	}
	if err := r.tell(others...); err != nil {
		return err
	}
	if r.KeysOnly {
		records := make([]*record, len(batch))
		for i, c := range batch {
			records[i] = c.record()
			records[i].Count = c.count
		}
		return r.tell(records...)
	}
	if err := r.askShared(ctx, batch); err != nil {
		return err
	}
	var bytes int64
	for _, c := range batch {
		bytes += c.size + c.own
	}
	for group := range groups(batch, func(c candidate) int64 { return c.size + c.own }) {
		if err := r.read(ctx, group); err != nil {
			return err
		}
	}
	return r.meter.passed(ctx, 0, bytes)
}

// groups splits keys so that one round trip for each group reads about a page; a key
// that is larger makes a group of its own.
func groups[T any](keys []T, size func(T) int64) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		from, sum := 0, int64(0)
		for i, k := range keys {
			if i > from && (sum+size(k) > pageBytes || i-from >= batchKeys) {
				if !yield(keys[from:i]) {
					return
				}
				from, sum = i, 0
			}
			sum += size(k)
		}
		if from < len(keys) {
			yield(keys[from:])
		}
	}
}

// record is what the name of a key tells.
func (c candidate) record() *record {
	return &record{Key: c.key, Kind: c.found.Kind, Era: c.found.Eras.String(), Stem: c.found.Stem}
}

// content is what was read of a key.
type content struct {
	members *redis.ZSliceCmd
	set     *redis.StringSliceCmd
	text    *redis.StringCmd
	fields  *redis.MapStringStringCmd
}

func (c content) err() error {
	var errs []error
	if c.members != nil {
		errs = append(errs, c.members.Err())
	}
	if c.set != nil {
		errs = append(errs, c.set.Err())
	}
	if c.text != nil {
		errs = append(errs, c.text.Err())
	}
	if c.fields != nil {
		errs = append(errs, c.fields.Err())
	}
	return errors.Join(errs...)
}

// read reads keys that fit into one round trip, or one key that may not.
func (r *auditor) read(ctx context.Context, group []candidate) error {
	got := make([]content, len(group))
	large := len(group) == 1 && group[0].size+group[0].own > pageBytes
	err := r.pipeline(ctx, func(p redis.Pipeliner) {
		for i, c := range group {
			got[i] = fetch(ctx, p, c, large)
		}
	})
	if err != nil {
		return err
	}
	records := make([]*record, 0, len(group))
	for i, c := range group {
		if errors.Is(got[i].err(), redis.Nil) {
			records = append(records, r.untouched(r.problem(Gone, c.key, "it vanished during the audit")))
			continue
		}
		if err := got[i].err(); err != nil {
			return r.explain(ctx, fmt.Errorf("%q: %w", c.key, err))
		}
		rec, err := r.recordOf(ctx, c, got[i], large)
		if err != nil {
			return err
		}
		if rec != nil {
			rec.Problems = append(c.problems, rec.Problems...)
			records = append(records, rec)
		}
	}
	if err := r.compareSnapshots(ctx, records); err != nil {
		return err
	}
	return r.tell(records...)
}

// fetch queues what reads the whole key; of a large one only what comes in one piece.
func fetch(ctx context.Context, p redis.Pipeliner, c candidate, large bool) (got content) {
	switch c.found.Kind {
	case legacy.Snapshot:
		got.text = p.Get(ctx, c.key)
	case legacy.Prepare:
		got.fields = p.HGetAll(ctx, c.key)
	case legacy.Events:
		if !large {
			got.members, got.set = p.ZRangeWithScores(ctx, c.key, 0, -1), p.SMembers(ctx, c.key+requestsSuffix)
		}
	case legacy.IDs:
		if !large {
			got.members = p.ZRangeWithScores(ctx, c.key, 0, -1)
		}
	case legacy.Requests:
		if !large {
			got.set = p.SMembers(ctx, c.key)
		}
	}
	return got
}

// recordOf makes a key's record of what was read, or reads it page by page.
func (r *auditor) recordOf(ctx context.Context, c candidate, got content, large bool) (*record, error) {
	switch c.found.Kind {
	case legacy.Events:
		s := r.newStream(c)
		err := s.read(ctx, got, large)
		if err != nil {
			return nil, err
		}
		rec := s.record()
		rec.Beside = s.beside(rec)
		return rec, nil
	case legacy.IDs:
		return r.index(ctx, c, got, large)
	case legacy.Requests:
		return r.loneRequests(ctx, c, got, large)
	case legacy.Snapshot:
		return r.snapshot(c, got.text.Val()), nil
	case legacy.Prepare:
		return r.prepared(ctx, c, got.fields.Val())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sharedKeys = append(r.sharedKeys, c.key)
	return nil, nil //nolint:nilnil // era C's sets come at the end
}
