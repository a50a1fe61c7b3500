package estest

import (
	"crypto/rand"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var raceChecks = []check[es.EventStore]{
	{"STO-01 a hundred writers of one version have one winner", raceVersion},
	{"STO-02 one commit sent twenty times is stored once", raceSame},
	{"STO-03 one request in many commits is carried out once", raceRequest},
	{"KEY-05 two tenants race for one id", raceTenants},
	{"STO-09 writers that reload get through", raceReload},
	{"a reader beside a writer sees whole batches in order", raceReader},
}

func raceVersion(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	const rounds, writers = 5, 100
	for version := 1; version <= rounds; version++ {
		commits := make([]es.Commit, writers)
		for i := range commits {
			commits[i] = commitOf(id, version)
		}
		won := together(t, writers, []error{es.ErrVersionConflict}, func(i int) error {
			_, err := k.store.Append(t.Context(), es.AppendOptions{}, commits[i])
			return err
		})
		require.Equal(t, 1, won, "winners of version %d", version)
		require.Len(t, stored(t, k.store, id), version)
	}
}

func raceSame(t *testing.T, k kit[es.EventStore]) {
	c := commitOf(k.typ.ID("a-1"), 1)
	var fresh atomic.Int32
	require.Equal(t, 20, together(t, 20, nil, func(int) error {
		done, err := k.store.Append(t.Context(), es.AppendOptions{}, c)
		if err == nil && !done.Same {
			fresh.Add(1)
		}
		return err
	}))
	require.EqualValues(t, 1, fresh.Load(), "calls that stored it")
	requireStored(t, k.store, c.Aggregate, c)
}

func raceRequest(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	commits := make([]es.Commit, 50)
	for i := range commits {
		commits[i] = commitOf(id, 1+i%2)
		commits[i].RequestID = "one request"
	}
	won := together(t, len(commits), []error{es.ErrDuplicateRequest, es.ErrVersionConflict}, func(i int) error {
		_, err := k.store.Append(t.Context(), es.AppendOptions{}, commits[i])
		return err
	})
	require.Equal(t, 1, won)
	require.Len(t, stored(t, k.store, id), 1)
}

func raceTenants(t *testing.T, k kit[es.EventStore]) {
	for round := range 20 {
		id := k.typ.ID(rand.Text())
		rivals := []es.Commit{commitOf(id.InTenant("tenant-1"), 1), commitOf(id.InTenant("tenant-2"), 1)}
		require.Equal(t, 1, together(t, 2, []error{es.ErrDuplicateAggregate}, func(i int) error {
			_, err := k.store.Append(t.Context(), es.AppendOptions{}, rivals[i])
			return err
		}), "round %d", round)
		left := 0
		for _, c := range rivals {
			left += len(stored(t, k.store, c.Aggregate))
			if _, err := k.store.FindRequest(t.Context(), c.Aggregate, c.RequestID); err == nil {
				left += 10
			}
		}
		require.Equal(t, 11, left, "the winner's commit and request, nothing of the loser's")
	}
}

func raceReload(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	const writers, each = 8, 10
	require.Equal(t, writers, together(t, writers, nil, func(int) error {
		for done := 0; done < each; {
			version := 0
			for c, err := range k.store.Load(t.Context(), id, es.Versions{}) {
				if err != nil {
					return err
				}
				version = c.Version
			}
			_, err := k.store.Append(t.Context(), es.AppendOptions{}, commitOf(id, version+1))
			switch {
			case err == nil:
				done++
			case !isAny(err, []error{es.ErrVersionConflict}):
				return err
			}
		}
		return nil
	}))
	got := stored(t, k.store, id)
	require.Len(t, got, writers*each)
	for i, c := range got {
		require.Equal(t, i+1, c.Version)
	}
}

func raceReader(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	const batches, size = 30, 3
	require.Equal(t, 4, together(t, 4, nil, func(i int) error {
		for b := range batches {
			if i == 0 {
				if _, err := k.store.Append(t.Context(), es.AppendOptions{}, commitsOf(id, 1+b*size, size)...); err != nil {
					return err
				}
				continue
			}
			next := 1
			for c, err := range k.store.Load(t.Context(), id, es.Versions{}) {
				if err != nil {
					return err
				}
				if c.Version != next {
					return es.Corrupt("version %d came where %d was due", c.Version, next)
				}
				next++
			}
			if (next-1)%size != 0 {
				return es.Corrupt("half a batch was seen: %d commits", next-1)
			}
		}
		return nil
	}))
}
