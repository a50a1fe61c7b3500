package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// Rollback removes the canonical keys that a copy wrote, where nobody has changed them
// since and their source is as it was audited.
type Rollback struct {
	Pace
}

// Run takes the copy back, whole or cut short. A key with anything in it that its source
// does not hold is kept and told. Once [Finish] has begun it is refused.
func (b Rollback) Run(ctx context.Context, source, target redis.UniversalClient, manifest io.ReadSeeker) (Result, error) {
	s, err := start(ctx, "rollback", b.Pace, source, target, manifest)
	if err != nil {
		return Result{}, fmt.Errorf("rollback: %w", err)
	}
	return s.done((&returner{s}).run(ctx))
}

type returner struct{ *step }

func (b *returner) run(ctx context.Context) error {
	switch b.state {
	case stateNone:
		return es.Invalid("nothing of this manifest was copied")
	case stateFinishing, stateFinished:
		return es.Invalid("the old keys are being removed, or are removed: there is nothing to go back to")
	}
	if err := b.enter(ctx, stateCopying); err != nil { // it is no whole copy from now on
		return err
	}
	if err := b.each(ctx, func(rec *record) bool { return rec.Target != "" }, b.returnGroup); err != nil || b.result.Blocking > 0 {
		return err
	}
	_, err := do(ctx, b.target, func() (int64, error) { return b.target.rdb.Del(ctx, b.marker()).Result() })
	return err
}

func (b *returner) returnGroup(ctx context.Context, group []*record) error {
	for _, rec := range group {
		if err := b.takeBack(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// takeBack removes one target key.
func (b *returner) takeBack(ctx context.Context, rec *record) error {
	requests, p, err := b.sourceOf(ctx, rec)
	if err != nil {
		return b.source.blame(ctx, err)
	}
	if p != nil {
		b.report(p)
		return nil
	}
	keys, removed := []string{rec.Target}, false
	if rec.Kind == legacy.Events {
		k := rediskey.EventKeys(rec.Aggregate.id())
		keys = []string{k.Stream, k.Requests} // the index is shared with others, which may leave it at this moment
	}
	err = b.watch(ctx, b.target, func(tx *redis.Tx) error {
		there, own, err := b.ours(ctx, tx, rec, requests)
		switch {
		case isWrongType(err) || err == nil && there && !own:
			return redis.TxFailedErr
		case err != nil || !there:
			return err
		}
		removed = true
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			if rec.Kind != legacy.Events {
				p.Unlink(ctx, rec.Target)
				return nil
			}
			k := rediskey.EventKeys(rec.Aggregate.id())
			p.Unlink(ctx, k.Stream, k.Requests)
			p.ZRem(ctx, k.IDs, k.Member)
			return nil
		})
		return err
	}, keys...)
	if errors.Is(err, redis.TxFailedErr) {
		b.report(b.blocks(TargetDiffers, rec.Target, "somebody has written to it, and it is kept"))
		return nil
	}
	if err == nil && removed {
		b.add(func(r *Result) {
			r.Keys++
			r.countRecord(rec)
		})
	}
	return err
}

// sourceOf makes sure that the source is what was audited, and collects its request ids.
func (b *returner) sourceOf(ctx context.Context, rec *record) (map[fingerprint]struct{}, *Problem, error) {
	var sum string
	var there bool
	var err error
	requests := map[fingerprint]struct{}{}
	if rec.Kind == legacy.Events {
		o := newOrdered()
		err = b.source.pages(ctx, rec.Key, rec.Count, rec.Bytes, func(page []redis.Z) error {
			for _, z := range page {
				o.add(member(z), z.Score)
			}
			for _, id := range decodedRequests(page) {
				requests[fingerprintOf(id.(string))] = struct{}{} //nolint:forcetypeassert // they are texts
			}
			return nil
		})
		there, sum = o.count > 0, o.sum()
	} else {
		there, sum, err = b.source.sumOf(ctx, b.source.rdb, rec, rec.Key, 0)
	}
	switch {
	case isWrongType(err) || err == nil && there && sum != rec.Sum:
		return nil, b.blocks(Changed, rec.Key, "it is not as it was audited, so its copy is kept"), nil
	case err == nil && !there:
		return nil, b.blocks(Gone, rec.Key, "so its copy is kept"), nil
	}
	return requests, nil, err
}

// ours reports whether a target key is there, and holds nothing that its source does not.
func (b *returner) ours(ctx context.Context, tx *redis.Tx, rec *record, requests map[fingerprint]struct{}) (there, own bool, err error) {
	if rec.Kind != legacy.Events {
		there, sum, err := b.target.sumOf(ctx, tx, rec, rec.Target, 0)
		if err == nil && there && sum != rec.Sum && rec.Kind == legacy.Prepare {
			own, err = b.partlyOurs(ctx, tx, rec)
			return there, own, err
		}
		return there, sum == rec.Sum, err
	}
	k := rediskey.EventKeys(rec.Aggregate.id())
	own = true
	err = b.target.pagesOf(ctx, tx, k.Stream, rec.Count, rec.Bytes, func(page []redis.Z) error {
		there = there || len(page) > 0
		scores := make([]*redis.FloatCmd, len(page))
		err := b.source.pipeline(ctx, func(p redis.Pipeliner) {
			for i, z := range page {
				scores[i] = p.ZScore(ctx, rec.Key, member(z))
			}
		})
		for i, z := range page {
			own = own && scores[i].Err() == nil && scores[i].Val() == z.Score
		}
		return err
	})
	if err != nil {
		return there, own, err
	}
	err = b.target.scanSetOf(ctx, tx, k.Requests, func(page []string) error {
		there = there || len(page) > 0
		for _, id := range page {
			_, ok := requests[fingerprintOf(id)]
			own = own && ok
		}
		return nil
	})
	return there, own, err
}

// partlyOurs reports a reservation of which a copy that was cut wrote some fields.
func (b *returner) partlyOurs(ctx context.Context, tx *redis.Tx, rec *record) (bool, error) {
	fields, err := do(ctx, b.source, func() (map[string]string, error) { return b.source.rdb.HGetAll(ctx, rec.Key).Result() })
	if err != nil {
		return false, err
	}
	return partly(content{fields: tx.HGetAll(ctx, rec.Target)}, fields), nil
}
