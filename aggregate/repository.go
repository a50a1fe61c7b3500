package aggregate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/headwater-go/headwater/es"
)

// Repository loads aggregates and carries out their commands. It is safe for
// concurrent use once its fields are set, and may be shared by any number of
// goroutines and processes: the store decides who was first. Of an aggregate that takes
// over 1,000 commits to load, it reads the rest for one caller at a time.
type Repository[S any] struct {
	Decider Decider[S]
	// Store keeps the commits.
	Store es.EventStore
	// Snapshots shorten loading. Defaults to none.
	Snapshots es.SnapshotStore[S]
	// Strategy says when a snapshot is saved. Defaults to every 50 versions.
	Strategy es.SnapshotStrategy
	// Events and States are where commits, and the states they led to, are published after
	// they are stored; Outbox keeps the notes of what is not published yet. All processes
	// that handle commands of the type must have the same buses, and one at least should run
	// a [Relay]. Events and States default to none, Outbox to the Store, which must be one
	// where Events is set.
	Events es.EventPublisher
	States es.StatePublisher
	Outbox es.Outbox
	// Notifier tells whoever waits for a command what became of it: once its commit is
	// stored and published, and again once it is settled whether a snapshot is saved.
	// Defaults to none.
	Notifier es.Notifier
	// NewID makes the ids of commands, commits and events; it must be safe for
	// concurrent use. Defaults to an [es.IDGenerator] whose machine id is drawn at
	// random; give one with a machine id of its own where ids are made at a high rate
	// in many processes.
	NewID func() string
	// Cached is how many aggregates are kept as their last command left them, so that the
	// next one need not load them. Only a success comes from a kept one: before anything
	// else is reported, the aggregate is loaded. A failover that loses commits which are then
	// replaced by as many others goes unseen until an append fails. Defaults to none.
	Cached int
	// Attempts limits how often one command is tried when others change its aggregate
	// at the same time. Defaults to 10. After an [es.ErrUncertain] it is tried again
	// twice at most: each took as long as the store's client waits and retries by itself.
	Attempts int
	// Digest makes the [es.Command].Digest of commands that come over no bus, such as a
	// codec's CommandDigest. Defaults to none: of theirs, only request ids are compared.
	Digest func(*es.Command) (string, error)
	// Logger hears of snapshots that could not be used or saved, once for each aggregate
	// until one is saved. Defaults to slog.Default().
	Logger *slog.Logger

	once    sync.Once
	warned  warnings
	turns   turns
	carrier carrier
	cache   cache[S]
}

// Handle carries out one command, at most once for its request id, and returns the
// version that it produced: also where an earlier call had produced it already
// (Duplicate). Unset fields of the command get their defaults.
//
// An [es.ErrRefused] is the aggregate's answer; nothing was written, and no record of
// it is kept. It is also an [es.ErrVersionConflict] or [es.ErrDuplicateAggregate] where
// a command creates what is there already, and an [es.ErrRequestReused] where another
// command, by its digest, was carried out under the same request id. Any other ErrVersionConflict means that
// others were faster at every attempt. After [es.ErrUncertain] the same command may be
// handled again, if it has an ID or a RequestID: without, each call is a new request.
func (r *Repository[S]) Handle(ctx context.Context, cmd es.Command) (es.Result, error) {
	r.once.Do(r.defaults)
	if cmd.Void {
		return es.Result{Aggregate: cmd.Aggregate}, nil
	}
	cmd.Complete(r.NewID, time.Now())
	if err := r.accepts(&cmd); err != nil {
		err = located(&cmd, 0, err)
		r.processed(ctx, &cmd, 0, err)
		return es.Result{}, err
	}
	var pauses backoff.BackOff // most commands need none
	for uncertain := 0; ; {
		version, done, err := r.attempt(ctx, &cmd)
		if done {
			return es.Result{Aggregate: cmd.Aggregate, Version: version}, nil
		}
		if errors.Is(err, es.ErrUncertain) {
			uncertain++
		}
		if uncertain <= maxUncertain && again(&cmd, err) {
			if pauses == nil {
				pauses = r.pauses(ctx)
			}
			if pause(ctx, pauses.NextBackOff()) {
				continue
			}
		}
		result, err := r.settle(ctx, &cmd, version, err)
		r.processed(ctx, &cmd, result.Version, err)
		if err == nil {
			r.decided(ctx, &cmd, result.Version)
		}
		return result, err
	}
}

// maxUncertain is how many uncertain outcomes of one command are followed by another attempt.
const maxUncertain = 2

// attempt tries a kept aggregate first. It may be old: then it is no answer.
func (r *Repository[S]) attempt(ctx context.Context, cmd *es.Command) (version int, done bool, err error) {
	if r.Cached > 0 && !cmd.Create {
		if kept := r.cache.take(cmd); kept != nil {
			version, done, err = r.try(ctx, cmd, kept)
			if done || transient(err) {
				return version, done, err
			}
		}
	}
	now, err := r.current(ctx, cmd)
	if err != nil {
		return 0, false, err
	}
	return r.try(ctx, cmd, &now)
}

// try is the whole of event sourcing but loading: decide, evolve, append, publish. It returns the
// version that the aggregate is at, and whether this command took it there.
func (r *Repository[S]) try(ctx context.Context, cmd *es.Command, now *live[S]) (version int, done bool, err error) {
	version = now.Version
	if err := check(&now.Meta, cmd); err != nil {
		return version, false, err
	}
	events, err := r.decide(now.State, cmd)
	if err != nil || len(events) == 0 {
		return version, false, err
	}
	commit := r.commit(&now.Meta, cmd, events)
	if err := r.apply(&now.Snapshot, &commit); err != nil {
		return version, false, err
	}
	o := r.options(&now.Snapshot, &commit)
	appended, err := r.Store.Append(ctx, o, commit)
	if err != nil {
		return version, false, err
	}
	r.publish(ctx, o, &commit, appended)
	r.processed(ctx, cmd, commit.Version, nil)
	r.save(ctx, now)
	r.decided(ctx, cmd, commit.Version)
	r.keep(now)
	return commit.Version, true, nil
}

// again says whether another attempt may end differently. Who creates does not try
// again after a conflict: the aggregate exists, and will go on doing so. What a decider
// returned or panicked with is its answer, whatever kind of error it is besides.
func again(cmd *es.Command, err error) bool {
	if is(err, es.ErrRefused, es.ErrPanic) {
		return false
	}
	return errors.Is(err, es.ErrUncertain) || errors.Is(err, es.ErrVersionConflict) && !cmd.Create
}

// settle looks the request up before a refusal, a conflict, a panic or an empty decision
// is reported: a command that was carried out before is a success, whatever came since.
func (r *Repository[S]) settle(ctx context.Context, cmd *es.Command, version int, err error) (es.Result, error) {
	result := es.Result{Aggregate: cmd.Aggregate, Version: version}
	if err != nil && !is(err, es.ErrRefused, es.ErrPanic, es.ErrVersionConflict, es.ErrDuplicateRequest, es.ErrDuplicateAggregate, es.ErrUncertain) {
		return result, located(cmd, version, err)
	}
	found, lookup := r.Store.FindRequest(ctx, cmd.Aggregate, cmd.RequestID)
	switch {
	case lookup == nil && differs(cmd, &found):
		result.Version = found.Version
		return result, located(cmd, found.Version, es.Refuse(es.ErrRequestReused))
	case lookup == nil:
		r.republish(ctx, &found)
		result.Version, result.Duplicate = found.Version, true
		return result, nil
	case !errors.Is(lookup, es.ErrNotFound):
		if err != nil && !errors.Is(err, es.ErrRefused) { // a refusal is no answer yet
			lookup = fmt.Errorf("%w; and its request was not looked up: %w", err, lookup)
		}
		return result, located(cmd, version, lookup)
	case err == nil:
		return result, nil
	case is(err, es.ErrDuplicateAggregate, es.ErrVersionConflict) && !again(cmd, err) && !errors.Is(err, es.ErrPanic):
		err = es.Refuse(err) // it exists: the answer to whoever creates it
	}
	return result, located(cmd, version, err)
}

func is(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// located says which command err is about, unless a store has said so already.
func located(cmd *es.Command, version int, err error) error {
	var e *es.Error
	if errors.As(err, &e) {
		return err
	}
	return &es.Error{Op: "handle " + cmd.Name, Aggregate: cmd.Aggregate, Version: version, RequestID: cmd.RequestID, Err: err}
}

func (r *Repository[S]) defaults() {
	if r.Strategy == nil {
		r.Strategy = func(saved, current es.Meta) bool { return current.Version-saved.Version >= 50 }
	}
	if r.NewID == nil {
		r.NewID = es.NewRandomIDs()
	}
	if r.Attempts == 0 {
		r.Attempts = 10
	}
	if r.Logger == nil {
		r.Logger = slog.Default()
	}
	if r.Events != nil && r.Outbox == nil {
		r.Outbox = r.Store.(es.Outbox) //nolint:forcetypeassert // without notes no commit is safe: found at the first call
	}
}

// pauses are those between the attempts at one command: short at first, since a
// conflict is over as soon as it is seen; spread, so that rivals do not meet again; and
// doubled, so that of hundreds nearly each has its turn in the second that ten last.
func (r *Repository[S]) pauses(ctx context.Context) backoff.BackOff {
	return backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(2*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(0)), uint64(max(r.Attempts-1, 0))), ctx)
}

func pause(ctx context.Context, d time.Duration) bool {
	if d == backoff.Stop {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
