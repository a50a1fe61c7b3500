package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// write is what is to be written of one key; nothing where it is there already.
type write struct {
	rec     *record
	there   bool
	members []redis.Z
	reqs    []any
	text    string
	fields  map[string]string

	// What the server confirmed.
	added, held, requests, indexed *redis.IntCmd
	set                            *redis.BoolCmd
	sets                           []*redis.BoolCmd
}

// write writes what is missing, and takes only what the server confirms for written.
func (c *copier) write(ctx context.Context, writes []*write) (confirmed []*write, err error) {
	err = c.target.pipeline(ctx, func(p redis.Pipeliner) {
		for _, w := range writes {
			w.queue(ctx, p)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, w := range writes {
		if err := w.err(); err != nil {
			return nil, c.target.explain(ctx, fmt.Errorf("write %q: %w", w.rec.Target, err))
		}
		p, err := c.confirm(ctx, w)
		switch {
		case err != nil:
			return nil, err
		case p != nil:
			c.report(p)
		default:
			confirmed = append(confirmed, w)
		}
	}
	return confirmed, nil
}

func (w *write) queue(ctx context.Context, p redis.Pipeliner) {
	switch w.rec.Kind {
	case legacy.Events:
		k := rediskey.EventKeys(w.rec.Aggregate.id())
		if len(w.members) > 0 {
			w.added, w.held = p.ZAddNX(ctx, k.Stream, w.members...), p.ZCard(ctx, k.Stream)
		}
		w.requests = p.SAdd(ctx, k.Requests, w.reqs...)
		w.indexed = p.ZAddNX(ctx, k.IDs, redis.Z{Member: k.Member})
	case legacy.Snapshot:
		if !w.there {
			w.set = p.SetNX(ctx, w.rec.Target, w.text, 0)
		}
	case legacy.Prepare:
		w.sets = nil
		if w.there {
			return
		}
		for field, value := range w.fields {
			w.sets = append(w.sets, p.HSetNX(ctx, w.rec.Target, field, value))
		}
	}
}

func (w *write) err() error {
	var errs []error
	for _, c := range []*redis.IntCmd{w.added, w.held, w.requests, w.indexed} {
		if c != nil {
			errs = append(errs, c.Err())
		}
	}
	if w.set != nil {
		errs = append(errs, w.set.Err())
	}
	for _, c := range w.sets {
		errs = append(errs, c.Err())
	}
	return errors.Join(errs...)
}

// confirm looks at the target again where the server's counts leave a doubt: the same
// call may have been sent twice, or somebody else writes.
func (c *copier) confirm(ctx context.Context, w *write) (*Problem, error) {
	sure := w.set == nil || w.set.Val()
	for _, s := range w.sets {
		sure = sure && s.Val()
	}
	if w.added != nil {
		sure = sure && w.added.Val() == w.rec.Count && w.held.Val() == w.rec.Count && w.requests.Val() == w.rec.Requests
	} else if w.requests != nil {
		sure = false
	}
	if sure {
		return nil, nil //nolint:nilnil // nothing is wrong
	}
	return c.targetProblem(ctx, w.rec)
}

func (c *copier) count(writes ...*write) {
	c.add(func(r *Result) {
		for _, w := range writes {
			r.countRecord(w.rec)
			if !w.there && !c.dry {
				r.Keys++
			}
		}
	})
}

// countRecord counts a record whose target is as it should be.
func (r *Result) countRecord(rec *record) {
	switch rec.Kind {
	case legacy.Events:
		r.Aggregates++
		r.Events += rec.Count
		r.Requests += rec.Requests
	case legacy.Snapshot:
		r.Snapshots++
	case legacy.Prepare:
		r.Prepared++
	}
}
