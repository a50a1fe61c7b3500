package migrate

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// scanAll walks through every key of every master, and again where slots moved or a
// server ended meanwhile: a key that moved from a part not yet walked through to one
// that was would be missed.
func (r *auditor) scanAll(ctx context.Context) error {
	nodes, err := r.nodes(ctx)
	if err != nil {
		return err
	}
	for deadline := newDeadline(r.settle()); ; {
		pages := newPool(ctx, len(nodes)+1)
		for _, n := range nodes {
			pages.run(func(ctx context.Context) error { return r.scanNode(ctx, n) })
		}
		if err := pages.end(); err != nil {
			return err
		}
		after, err := r.nodes(ctx)
		if err != nil || same(nodes, after) {
			return err
		}
		if deadline.over() {
			return errMoving
		}
		nodes = after
	}
}

const scanCount = 1000

func (r *auditor) scanNode(ctx context.Context, n node) error {
	batches := newPool(ctx, r.parallel())
	err := scan(ctx, r.server, n, "", func(keys []string) error {
		found, canonical := r.sift(keys)
		if err := r.tell(canonical...); err != nil {
			return err
		}
		if err := r.meter.passed(batches.ctx, len(keys), 0); err != nil {
			return err
		}
		for batch := range slices.Chunk(found, batchKeys) {
			if !batches.run(func(ctx context.Context) error { return r.inspect(ctx, batch) }) {
				return context.Cause(batches.ctx)
			}
		}
		return nil
	})
	if failed := batches.end(); failed != nil {
		err = failed
	}
	return err
}

// scan calls f with the keys of a node, a page at a time. Pages may be empty.
func scan(ctx context.Context, s server, n node, match string, f func(keys []string) error) error {
	type page struct {
		keys []string
		next uint64
	}
	for cursor := uint64(0); ; {
		got, err := redisrun.Do(ctx, s.pace.Patience, func() (p page, err error) {
			p.keys, p.next, err = n.rdb.Scan(ctx, cursor, match, scanCount).Result()
			return p, err
		})
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			return &NodeError{n.addr, err}
		}
		if err := f(got.keys); err != nil {
			return err
		}
		if cursor = got.next; cursor == 0 {
			return nil
		}
	}
}

// sift keeps the keys whose names are those of an era; others that look so are records
// that say so.
func (r *auditor) sift(keys []string) (found []candidate, others []*record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Scanned += int64(len(keys))
	for _, key := range keys {
		if c, ok := legacy.Canonical(key); ok {
			if r.first(key) {
				r.stem(c.Stem).canonical++
				r.report.count(Line{Era: canonicalEra, Type: c.Stem, Kind: string(c.Kind), Keys: 1})
			}
			continue
		}
		f, ok := legacy.Recognize(key, "")
		switch {
		case !ok && !legacy.LooksLike(key) || !r.first(key):
		case !ok:
			others = append(others, r.untouched(r.problem(LookAlike, keyText(key), "no era wrote such a name")))
		default:
			found = append(found, candidate{key: key, found: f})
		}
	}
	return found, others
}

func (r *auditor) first(key string) bool {
	p := fingerprintOf(keyText(key))
	if _, ok := r.seen[p]; ok {
		return false
	}
	r.seen[p] = struct{}{}
	return true
}

// size is how many keys there are, about.
func (r *auditor) size(ctx context.Context) (int64, error) {
	n, err := do(ctx, r.server, func() (int64, error) { return r.rdb.DBSize(ctx).Result() })
	var reply redis.Error
	if errors.As(err, &reply) && redisrun.Word(err) == "NOPERM" {
		return 0, nil // only the estimate is missed
	}
	return n, err
}
