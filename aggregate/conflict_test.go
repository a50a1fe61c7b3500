package aggregate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// rivalled is a repository whose first so many appends come too late: another one adds
// 10 just before them.
func rivalled(t *testing.T, times int) (*repository, *watched, es.AggregateID) {
	t.Helper()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 1)
	rival := &repository{Decider: r.Decider, Store: store.EventStore}
	store.appends.Store(0)
	store.before = func(es.Commit) error {
		if store.appends.Load() <= int64(times) {
			handle(t, rival, es.NewCommand(id, add{10}))
		}
		return nil
	}
	store.loads.Store(0)
	return r, store, id
}

func TestConflictIsTriedAgainFromAFreshLoad(t *testing.T) {
	t.Parallel()
	r, store, id := rivalled(t, 3)
	var seen []int
	decide := r.Decider.Decide
	r.Decider.Decide = func(s counter, c es.Command) (es.Events, error) {
		seen = append(seen, s.Value)
		return decide(s, c)
	}
	require.Equal(t, es.Result{Aggregate: id, Version: 5}, handle(t, r, es.NewCommand(id, add{1})))
	require.Equal(t, []int{1, 11, 21, 31}, seen)
	require.EqualValues(t, 4, store.loads.Load())
	require.EqualValues(t, 4, store.appends.Load())
	requireAt(t, r, id, 5, 32)
}

func TestDecisionAfterAConflictMayBeARefusalOrEmpty(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]struct {
		events es.Events
		err    error
	}{"refusal": {err: errNegative}, "empty": {}} {
		r, _, id := rivalled(t, 1)
		r.Decider.Decide = func(s counter, _ es.Command) (es.Events, error) {
			if s.Value < 10 {
				return es.Events{added{1}}, nil
			}
			return want.events, want.err
		}
		result, err := r.Handle(t.Context(), es.NewCommand(id, add{1}))
		require.ErrorIs(t, err, want.err, what)
		require.Equal(t, es.Result{Aggregate: id, Version: 2}, result, what)
	}
}

func TestConflictWithAnExpectedVersionIsARefusal(t *testing.T) {
	t.Parallel()
	r, store, id := rivalled(t, 1)
	c := es.NewCommand(id, add{1})
	expecting(1)(&c)
	_, err := r.Handle(t.Context(), c)
	require.ErrorIs(t, err, es.ErrExpectedVersion)
	require.ErrorIs(t, err, es.ErrRefused)
	require.EqualValues(t, 1, store.appends.Load())
}

func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]int64{0: 10, 1: 1, 3: 3, -1: 1} {
		synctest.Test(t, func(t *testing.T) {
			used, store, id := rivalled(t, 1000)
			r := &repository{Decider: used.Decider, Store: store, Attempts: attempts}
			result, err := r.Handle(t.Context(), es.NewCommand(id, add{1}))
			require.ErrorIs(t, err, es.ErrVersionConflict)
			require.NotErrorIs(t, err, es.ErrRefused)
			require.Equal(t, want, store.appends.Load(), "attempts %d", attempts)
			require.Equal(t, want, store.loads.Load(), "attempts %d", attempts)
			require.EqualValues(t, want, result.Version, "what the last attempt found")
		})
	}
}

func TestPausesGrowAndAreSpread(t *testing.T) {
	t.Parallel()
	firsts := map[time.Duration]bool{}
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			r, store, id := rivalled(t, 1000)
			var at []time.Time
			rival := store.before
			store.before = func(c es.Commit) error { at = append(at, time.Now()); return rival(c) }
			_, err := r.Handle(t.Context(), es.NewCommand(id, add{1}))
			require.ErrorIs(t, err, es.ErrVersionConflict)
			require.Len(t, at, 10)
			for i, middle := 1, 2*time.Millisecond; i < len(at); i, middle = i+1, min(2*middle, 500*time.Millisecond) {
				require.InDelta(t, middle, at[i].Sub(at[i-1]), float64(middle)/2+1)
			}
			firsts[at[1].Sub(at[0])] = true
		})
	}
	require.Greater(t, len(firsts), 5, "rivals do not meet again")
}

func TestDoneContextEndsTheAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store, id := rivalled(t, 1000)
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Microsecond)
		defer cancel()
		start := time.Now()
		_, err := r.Handle(ctx, es.NewCommand(id, add{1}))
		require.ErrorIs(t, err, es.ErrVersionConflict)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 900*time.Microsecond, time.Since(start))
		require.EqualValues(t, 1, store.appends.Load())
	})
}

func TestWhatADeciderReturnsIsNotTakenForAConflict(t *testing.T) {
	t.Parallel()
	for _, kind := range []error{es.ErrVersionConflict, es.ErrUncertain, es.ErrDuplicateRequest} {
		for what, fail := range map[string]func() error{"returned": func() error { return kind }, "panicked": func() error { panic(kind) }} {
			r, store := newRepository()
			calls := 0
			r.Decider.Decide = func(counter, es.Command) (es.Events, error) { calls++; return nil, fail() }
			_, err := r.Handle(t.Context(), es.NewCreateCommand(r.Decider.Type.ID("c-1"), add{1}))
			require.ErrorIs(t, err, kind, what)
			require.Equal(t, what == "returned", errors.Is(err, es.ErrRefused))
			require.Equal(t, what == "panicked", errors.Is(err, es.ErrPanic))
			require.Equal(t, 1, calls, what)
			require.Zero(t, store.appends.Load())
		}
	}
}

// Each conflict of a command is another's success. So who may try as often as there are
// commands never fails, and who fails after ten attempts has seen ten versions: however
// busy the machine is.
func TestSTO09_HotAggregateCountsItsSuccesses(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		const workers, each = 6, 50
		for _, attempts := range []int{10, workers * each} {
			id := s.typ.ID(fmt.Sprint("hot-", attempts))
			grow(t, s.repository(), id, 1)
			var mu sync.Mutex
			versions := map[int]bool{}
			failed := 0
			var wg sync.WaitGroup
			for range workers {
				r := s.repository() // a process of its own
				r.Attempts = attempts
				for range each {
					wg.Go(func() {
						result, err := r.Handle(t.Context(), es.NewCommand(id, add{1}))
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							versions[result.Version] = true
							return
						}
						failed++
						if !errors.Is(err, es.ErrVersionConflict) || errors.Is(err, es.ErrRefused) {
							t.Errorf("not a plain conflict: %v", err)
						}
						if result.Version < attempts {
							t.Errorf("at version %d after %d attempts: not each was at a newer one", result.Version, attempts)
						}
					})
				}
			}
			wg.Wait()
			t.Logf("%d of %d succeeded within %d attempts", len(versions), workers*each, attempts)
			require.Equal(t, workers*each, len(versions)+failed, "no version has two winners")
			if attempts == workers*each {
				require.Zero(t, failed)
			}
			requireAt(t, s.repository(), id, 1+len(versions), 1+len(versions))
			for v := range versions {
				require.LessOrEqual(t, v, 1+len(versions), "versions are consecutive")
			}
		}
	})
}

func TestManyRepositoriesOverManyAggregates(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	const aggregates, workers, each = 8, 8, 20
	snapshots := newFaulty()
	var wg sync.WaitGroup
	for w := range workers {
		mine := &repository{Decider: r.Decider, Store: store, Snapshots: snapshots, Strategy: everyThird, Attempts: 1000}
		for n := range each * 2 {
			wg.Go(func() {
				c := es.NewCommand(r.Decider.Type.ID(string(rune('a'+(n+w)%aggregates))), add{1})
				c.AllowCreate = true
				if _, err := mine.Handle(t.Context(), c); err != nil {
					t.Errorf("with a thousand attempts: %v", err)
				}
			})
		}
	}
	wg.Wait()
	for n := range aggregates {
		requireAt(t, r, r.Decider.Type.ID(string(rune('a'+n))), 2*workers*each/aggregates, 2*workers*each/aggregates)
	}
}
