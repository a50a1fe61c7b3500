package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// Finish removes the old keys that a manifest lists, and nothing else, once [Verify] has
// passed for it.
type Finish struct {
	Pace
	// OldWriters is a client with the user and password of the old service. Finish tries
	// a write that changes nothing, and goes on only if the server refuses it: withdraw
	// that user's right to write, or its password, before.
	OldWriters redis.UniversalClient
	// WritersStopped is the operator's word that no old writer runs, where there is no
	// user of theirs to prove it with. One of the two is needed.
	WritersStopped bool
}

// Run removes each key in a transaction that reads it once more: one that is not what the
// manifest says, or whose copy is not there, is kept and told. The keys that keep a new
// service from starting go last. It may be cut at any moment and run again. At the end no
// key of these types' older layouts is left, or the result says which.
//
// From its first removal on there is no [Rollback].
func (f Finish) Run(ctx context.Context, source, target redis.UniversalClient, manifest io.ReadSeeker) (Result, error) {
	if f.OldWriters == nil && !f.WritersStopped {
		return Result{}, es.Invalid("finish: nothing says that the old writers are stopped")
	}
	s, err := start(ctx, "finish", f.Pace, source, target, manifest)
	if err != nil {
		return Result{}, fmt.Errorf("finish: %w", err)
	}
	return s.done((&finisher{s, f}).run(ctx))
}

type finisher struct {
	*step
	Finish
}

func (f *finisher) run(ctx context.Context) error {
	if f.state != stateVerified && f.state != stateFinishing && f.state != stateFinished {
		return es.Invalid("verify has not passed for this manifest since its last copy")
	}
	if err := f.proveStopped(ctx); err != nil || f.result.Blocking > 0 {
		return err
	}
	if f.state == stateVerified {
		if err := f.unlisted(ctx); err != nil || f.result.Blocking > 0 {
			return err
		}
	}
	if err := f.enter(ctx, stateFinishing); err != nil {
		return err
	}
	for _, sentinels := range []bool{false, true} {
		err := f.each(ctx, func(rec *record) bool { return rec.sentinel() == sentinels }, f.removeGroup)
		if err != nil || f.result.Blocking > 0 {
			return err // where something was kept, the sentinels are kept, too
		}
	}
	if err := f.unlisted(ctx); err != nil || f.result.Blocking > 0 {
		return err
	}
	return f.enter(ctx, stateFinished)
}

// proveStopped has the old writers' user try to remove a member that is not there.
func (f *finisher) proveStopped(ctx context.Context) error {
	if f.OldWriters == nil {
		return nil
	}
	for rec, err := range f.m.records() {
		if err != nil {
			return err
		}
		if rec.Kind != legacy.Events {
			continue
		}
		err := f.OldWriters.ZRem(ctx, rec.Key, "headwater: is anybody writing?").Err()
		switch redisrun.Word(err) {
		case "NOPERM", "NOAUTH", "WRONGPASS":
			return nil
		}
		if err == nil {
			f.report(f.blocks(WritersActive, rec.Key, "the old writers' user may still write it"))
			return nil
		}
		return fmt.Errorf("try the old writers' user: %w", redisrun.Explain(err))
	}
	return nil
}

func (f *finisher) removeGroup(ctx context.Context, group []*record) error {
	for _, rec := range group {
		if rec.Left && (rec.Kind == legacy.Events || rec.Kind == legacy.Requests) {
			f.add(func(r *Result) { r.Left++ })
			continue // commits that have no copy are never removed
		}
		removed, err := f.remove(ctx, rec)
		if err != nil {
			return err
		}
		f.add(func(r *Result) {
			if removed {
				r.Keys++
			}
			if rec.Target != "" {
				r.countRecord(rec)
			}
		})
	}
	return nil
}

// remove removes one key if it is still what the manifest says, and its copy is there.
func (f *finisher) remove(ctx context.Context, rec *record) (removed bool, err error) {
	if rec.Target != "" {
		limit := int64(0)
		if rec.Kind == legacy.Events {
			limit = rec.Count // a new service may have added to it
		}
		there, sum, err := f.target.sumOf(ctx, f.target.rdb, rec, rec.Target, limit)
		if err != nil && !isWrongType(err) {
			return false, f.target.blame(ctx, err)
		}
		if !there || rec.Kind == legacy.Events && sum != rec.Sum {
			f.report(f.blocks(TargetDiffers, rec.Target, fmt.Sprintf("so %q is kept", rec.Key)))
			return false, nil
		}
	}
	err = f.watch(ctx, f.source, func(tx *redis.Tx) error {
		there, sum, err := f.source.sumOf(ctx, tx, rec, rec.Key, 0)
		switch {
		case isWrongType(err) || err == nil && there && sum != rec.Sum:
			return redis.TxFailedErr
		case err != nil || !there:
			return err
		}
		removed = true
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Unlink(ctx, rec.Key)
			return nil
		})
		return err
	}, rec.Key)
	if errors.Is(err, redis.TxFailedErr) {
		f.report(f.blocks(Changed, rec.Key, "it is not as it was audited, and is kept"))
		return false, nil
	}
	return removed && err == nil, err
}

// watch runs f in a transaction that fails with [redis.TxFailedErr] where one of the keys
// changes before its end.
func (s *step) watch(ctx context.Context, on server, f func(tx *redis.Tx) error, keys ...string) error {
	_, err := redisrun.Do(ctx, s.pace.Patience, func() (struct{}, error) {
		err := on.rdb.Watch(ctx, f, keys...)
		return struct{}{}, err
	})
	if errors.Is(err, redis.TxFailedErr) {
		return redis.TxFailedErr
	}
	return on.blame(ctx, err)
}
