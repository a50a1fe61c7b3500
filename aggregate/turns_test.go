package aggregate_test

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

// slow is a store whose loads take an hour once they get long.
type slow struct {
	es.EventStore
	long, most atomic.Int64 // loads that are long now, and at most
	read       atomic.Int64 // commits
}

func (s *slow) Load(ctx context.Context, id es.AggregateID, r es.Versions) iter.Seq2[es.Commit, error] {
	return func(yield func(es.Commit, error) bool) {
		long := false
		for c, err := range s.EventStore.Load(ctx, id, r) {
			s.read.Add(1)
			if !long && c.Version > max(r.From, 1)+1000 {
				long = true
				if now := s.long.Add(1); now > s.most.Load() {
					s.most.Store(now)
				}
				time.Sleep(time.Hour)
				defer s.long.Add(-1)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// newSlow is a repository over such a store, and an aggregate of 1,500 commits.
func newSlow(t *testing.T) (*repository, *slow, es.AggregateID) {
	t.Helper()
	r, watched := newRepository()
	store := &slow{EventStore: watched.EventStore}
	r.Store = store
	id := r.Decider.Type.ID("c-1")
	addTo(t, store, id, 1500)
	return r, store, id
}

// addTo appends commits from the first on.
func addTo(t *testing.T, store es.EventStore, id es.AggregateID, n int) {
	t.Helper()
	ids := es.NewRandomIDs()
	commits := make([]es.Commit, n)
	for i := range commits {
		commits[i] = es.Commit{
			ID: ids(), Aggregate: id, CommandID: ids(), RequestID: ids(), Version: i + 1,
			Events: []es.Event{es.NewEvent(ids(), added{1})}, CreateTime: time.UnixMilli(1_700_000_000_000).UTC(),
		}
		commits[i].Derive()
	}
	for len(commits) > 0 {
		page := commits[:min(500, len(commits))]
		commits = commits[len(page):]
		_, err := store.Append(t.Context(), es.AppendOptions{}, page...)
		require.NoError(t, err)
	}
}

func TestSNAP03_LongLoadsOfOneAggregateTakeTurns(t *testing.T) {
	t.Parallel()
	for what, load := range map[string]func(context.Context, *repository, es.AggregateID) (es.Snapshot[counter], error){
		"now": func(ctx context.Context, r *repository, id es.AggregateID) (es.Snapshot[counter], error) {
			return r.Load(ctx, id)
		},
		"past": func(ctx context.Context, r *repository, id es.AggregateID) (es.Snapshot[counter], error) {
			return r.LoadVersion(ctx, id, 1500)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, store, id := newSlow(t)
			other := r.Decider.Type.ID("c-2")
			addTo(t, store, other, 1500)
			begin := time.Now()
			states := make([]es.Snapshot[counter], 10)
			var wg sync.WaitGroup
			for i := range states {
				wg.Go(func() {
					var err error
					states[i], err = load(t.Context(), r, []es.AggregateID{id, other}[i%2])
					if err != nil {
						t.Errorf("%s %d: %v", what, i, err)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 2, store.most.Load(), "%s: one of each aggregate", what)
			require.Equal(t, 5*time.Hour, time.Since(begin), "and side by side for the two")
			for _, s := range states {
				require.Equal(t, 1500, s.State.Value)
				s.State.Steps[0] = 7 // a state is its caller's own
			}
			for _, s := range states {
				require.Equal(t, 7, s.State.Steps[0])
				s.State.Steps[0] = 8
			}
		})
	}
}

func TestSNAP03_WhoWaitedUsesTheSnapshotThatWasSavedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store, id := newSlow(t)
		want, err := r.LoadVersion(t.Context(), id, 1500)
		require.NoError(t, err)
		r.Snapshots = memory.NewSnapshotStore[counter]()
		store.read.Store(0)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if s, err := r.Load(t.Context(), id); err != nil || s.State.Value != 1500 {
					t.Errorf("%d, %v", s.State.Value, err)
				}
			})
		}
		synctest.Wait() // nine wait behind the first
		require.NoError(t, r.Snapshots.Save(t.Context(), want))
		wg.Wait()
		require.EqualValues(t, 1500+9*(1001+1), store.read.Load())
		require.EqualValues(t, 1, store.most.Load())
	})
}

func TestSNAP03_AnUnusableSnapshotDoesNotKeepAnyoneWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store, id := newSlow(t)
		snapshots := newFaulty()
		snapshots.loadErr = &es.UnreadableSnapshot{Raw: []byte("{"), Err: es.ErrCorrupt}
		r.Snapshots = snapshots
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { requireAt(t, r, id, 1500, 1500) })
		}
		wg.Wait()
		require.EqualValues(t, 1, store.most.Load())
	})
}

func TestSNAP03_ADoneContextEndsTheWaitForATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store, id := newSlow(t)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { requireAt(t, r, id, 1500, 1500) })
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		_, err := r.Load(ctx, id)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(begin))
		wg.Wait()
		requireAt(t, r, id, 1500, 1500)
		require.EqualValues(t, 1, store.most.Load())
	})
}
