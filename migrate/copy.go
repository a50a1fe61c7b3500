package migrate

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// Copy writes the canonical keys that a manifest lists. It removes nothing and overwrites
// nothing: a target key that is there is compared, and one that differs is left and told.
type Copy struct {
	Pace
	// DryRun reads and compares, and writes nothing.
	DryRun bool
}

// Run copies from source to target, which may be the same client. Commits and their
// versions stay byte for byte; request ids and indexes are rebuilt from the commits. A
// manifest with problems that block is refused, and so is a target that has canonical
// keys of these types and in which this migration has not begun: the result says what
// stands in the way.
//
// It may be cut at any moment and run again, and counts what it found there already.
func (c Copy) Run(ctx context.Context, source, target redis.UniversalClient, manifest io.ReadSeeker) (Result, error) {
	s, err := start(ctx, "copy", c.Pace, source, target, manifest)
	if err != nil {
		return Result{}, fmt.Errorf("copy: %w", err)
	}
	return s.done((&copier{s, c.DryRun}).run(ctx))
}

type copier struct {
	*step
	dry bool
}

func (c *copier) run(ctx context.Context) error {
	if report := c.m.end.Report; report.Blocking > 0 {
		c.result.Problems = report.Problems
		return nil
	}
	switch c.state {
	case stateFinishing, stateFinished:
		return es.Invalid("the old keys of this migration are being removed, or are removed")
	case stateNone:
		if err := c.refuseForeign(ctx); err != nil || c.result.Blocking > 0 {
			return err
		}
	}
	if !c.dry {
		if err := c.enter(ctx, stateCopying); err != nil {
			return err
		}
	}
	if err := c.each(ctx, func(rec *record) bool { return true }, c.copyGroup); err != nil {
		return err
	}
	if c.dry || c.result.Blocking > 0 {
		return nil
	}
	return c.enter(ctx, stateCopied)
}

// refuseForeign finds canonical keys of the types and names that are to be copied.
func (c *copier) refuseForeign(ctx context.Context) error {
	var names []string
	for rec, err := range c.m.records() {
		if err != nil {
			return err
		}
		if rec.Name != "" && !slices.Contains(names, rec.Name) {
			names = append(names, rec.Name)
		}
	}
	var stems []string
	for _, t := range c.m.end.Report.Types {
		stems = append(stems, t.String())
	}
	nodes, err := c.target.nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		err := scan(ctx, c.target, n, "*v2:*", func(keys []string) error {
			for _, key := range keys {
				f, ok := legacy.Canonical(key)
				if ok && f.Kind != legacy.Prepare {
					ok = slices.Contains(stems, f.Stem)
				} else if ok {
					ok = slices.ContainsFunc(names, func(name string) bool { return hasPrefix(key, rediskey.PreparePrefix(name)) })
				}
				if ok {
					c.report(c.blocks(TargetNotEmpty, key, ""))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }

// copyGroup copies keys that fit into one round trip, or one that does not.
func (c *copier) copyGroup(ctx context.Context, group []*record) error {
	var left int64
	keep := group[:0:0]
	for _, rec := range group {
		switch {
		case rec.Target != "":
			keep = append(keep, rec)
		case rec.Left:
			left++
		}
	}
	c.add(func(r *Result) { r.Left += left })
	if len(keep) == 0 {
		return nil
	}
	if len(keep) == 1 && keep[0].Kind == legacy.Events && keep[0].large() {
		return c.copyLarge(ctx, keep[0])
	}
	sources, err := c.fetch(ctx, c.source, keep, func(rec *record) string { return rec.Key })
	if err != nil {
		return err
	}
	targets, err := c.fetch(ctx, c.target, keep, func(rec *record) string { return rec.Target })
	if err != nil {
		return err
	}
	var writes []*write
	for i, rec := range keep {
		w, found := compareCopy(rec, sources[i], targets[i])
		if found != nil {
			c.report(found)
			continue
		}
		writes = append(writes, w)
	}
	if !c.dry {
		if writes, err = c.write(ctx, writes); err != nil {
			return err
		}
	}
	c.count(writes...)
	return nil
}

// fetch reads keys that fit into one round trip.
func (s *step) fetch(ctx context.Context, from server, group []*record, key func(*record) string) ([]content, error) {
	got := make([]content, len(group))
	err := from.pipeline(ctx, func(p redis.Pipeliner) {
		for i, rec := range group {
			switch rec.Kind {
			case legacy.Events, legacy.IDs:
				got[i].members = p.ZRangeWithScores(ctx, key(rec), 0, rec.Count) // one more than there should be
			case legacy.Requests, legacy.SharedRequests:
				got[i].set = p.SMembers(ctx, key(rec))
			case legacy.Snapshot:
				got[i].text = p.Get(ctx, key(rec))
			case legacy.Prepare:
				got[i].fields = p.HGetAll(ctx, key(rec))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for i, rec := range group {
		if err := got[i].err(); err != nil && !isNil(err) && !isWrongType(err) {
			return nil, from.explain(ctx, fmt.Errorf("%q: %w", key(rec), err))
		}
	}
	return got, nil
}
