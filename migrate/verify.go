package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// Verify compares both sides with the manifest, key by key and byte by byte. What passes
// is noted in the target, for [Finish].
type Verify struct {
	Pace
	// Replay, where set, is called for aggregates whose copy is right, by several
	// goroutines: it loads the aggregate as the new service will, and returns what is
	// wrong. It is called for each aggregate, or for one in Sample.
	Replay func(ctx context.Context, id es.AggregateID) error
	// Sample defaults to 1, which is every aggregate.
	Sample int
}

// Run compares: the checksums of commits and versions on both sides, request sets, every
// index against the commits, snapshots and reservations; that the source has no key of an
// older layout that the manifest does not list; and what Replay says.
func (v Verify) Run(ctx context.Context, source, target redis.UniversalClient, manifest io.ReadSeeker) (Result, error) {
	s, err := start(ctx, "verify", v.Pace, source, target, manifest)
	if err != nil {
		return Result{}, fmt.Errorf("verify: %w", err)
	}
	return s.done((&verifier{step: s, Verify: v, streams: map[string]int64{}}).run(ctx))
}

type verifier struct {
	*step
	Verify
	replayed atomic.Int64
	streams  map[string]int64 // how many aggregates each index must hold
}

func (v *verifier) run(ctx context.Context) error {
	switch v.state {
	case stateNone, stateCopying:
		return es.Invalid("this manifest has not been copied to its end")
	case stateCopied, stateVerified:
		if err := v.enter(ctx, stateCopied); err != nil {
			return err
		}
	}
	if err := v.each(ctx, func(*record) bool { return true }, v.verifyGroup); err != nil {
		return err
	}
	if err := v.indexes(ctx); err != nil {
		return err
	}
	if err := v.unlisted(ctx); err != nil {
		return err
	}
	if v.result.Blocking > 0 || v.state != stateCopied && v.state != stateVerified {
		return nil
	}
	return v.enter(ctx, stateVerified)
}

func (v *verifier) verifyGroup(ctx context.Context, group []*record) error {
	if err := v.sources(ctx, group); err != nil {
		return err
	}
	var copied []*record
	var found []*Problem
	var err error
	for _, rec := range group {
		v.add(func(r *Result) {
			if rec.Left {
				r.Left++
			}
			if rec.Kind == legacy.Events && rec.Target != "" {
				v.streams[rediskey.EventKeys(rec.Aggregate.id()).IDs]++
			}
		})
		if rec.Target != "" {
			copied = append(copied, rec)
		}
	}
	if len(copied) == 1 && copied[0].large() {
		p, err := v.targetProblem(ctx, copied[0])
		if err != nil {
			return err
		}
		found = append(found, p)
	} else if found, err = v.step.targets(ctx, copied); err != nil {
		return err
	}
	for i, rec := range copied {
		if found[i] != nil {
			v.report(found[i])
			continue
		}
		if err := v.passed(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// passed counts a record whose copy is right, and replays its aggregate.
func (v *verifier) passed(ctx context.Context, rec *record) error {
	v.add(func(r *Result) { r.countRecord(rec) })
	if rec.Kind != legacy.Events || v.Replay == nil || (v.replayed.Add(1)-1)%int64(max(v.Sample, 1)) != 0 {
		return nil
	}
	err := v.Replay(ctx, rec.Aggregate.id())
	switch {
	case err == nil:
	case ctx.Err() != nil || errors.Is(err, es.ErrUnavailable) || errors.Is(err, es.ErrUncertain):
		return err
	default:
		v.report(v.blocks(ReplayFailed, rec.Target, err.Error()))
	}
	return nil
}

// sources are compared with the manifest. Where finish has begun, some are gone.
func (v *verifier) sources(ctx context.Context, group []*record) error {
	finishing := v.state == stateFinishing || v.state == stateFinished
	if len(group) == 1 && group[0].large() {
		rec := group[0]
		there, sum, err := v.source.sumOf(ctx, v.source.rdb, rec, rec.Key, 0)
		if err != nil && !isWrongType(err) {
			return v.source.blame(ctx, err)
		}
		v.reportSource(unlike(rec, there, sum, err), finishing)
		return nil
	}
	got, err := v.fetch(ctx, v.source, group, func(rec *record) string { return rec.Key })
	if err != nil {
		return err
	}
	for i, rec := range group {
		v.reportSource(sourceProblem(rec, got[i]), finishing)
	}
	return nil
}

func (v *verifier) reportSource(p *Problem, finishing bool) {
	if p != nil && (p.Code != Gone || !finishing) {
		v.report(p)
	}
}

// indexes compares how many aggregates each index holds with how many there are; that
// each of these is in it has been seen already.
func (v *verifier) indexes(ctx context.Context) error {
	for _, t := range v.m.end.Report.Types {
		sizes := make([]*redis.IntCmd, rediskey.Buckets)
		err := v.target.pipeline(ctx, func(p redis.Pipeliner) {
			for bucket := range sizes {
				sizes[bucket] = p.ZCard(ctx, rediskey.Index(t, bucket))
			}
		})
		if err != nil {
			return err
		}
		for bucket, size := range sizes {
			if err := size.Err(); err != nil {
				return v.target.explain(ctx, err)
			}
			key := rediskey.Index(t, bucket)
			if size.Val() > v.streams[key] {
				v.report(v.blocks(TargetDiffers, key, fmt.Sprintf("it holds %d aggregates, and %d were copied", size.Val(), v.streams[key])))
			}
		}
	}
	return nil
}

// unlisted finds keys of older layouts that came after the audit.
func (s *step) unlisted(ctx context.Context) error {
	known := map[fingerprint]struct{}{}
	for l, err := range s.m.lines(nil) {
		if err != nil {
			return err
		}
		for rec := l.Record; rec != nil; rec = rec.Beside {
			known[fingerprintOf(rec.Key)] = struct{}{}
		}
	}
	nodes, err := s.source.nodes(ctx)
	if err != nil {
		return err
	}
	types := Audit{Types: s.m.head.Types}
	for _, n := range nodes {
		err := scan(ctx, s.source, n, "", func(keys []string) error {
			for _, key := range keys {
				f, ok := legacy.Recognize(key, "")
				if !ok || !(&auditor{Audit: types}).wants(f) {
					continue
				}
				if p := fingerprintOf(keyText(key)); !hasKey(known, p) {
					known[p] = struct{}{}
					s.report(s.blocks(Unlisted, keyText(key), "it came after the audit"))
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
