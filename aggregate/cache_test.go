package aggregate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/snapshot"
)

func TestKeptAggregateIsNotLoadedAgain(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	r.Cached, r.Snapshots, r.Strategy = 2, newFaulty(), snapshot.EveryVersions(3)
	ids := []es.AggregateID{r.Decider.Type.ID("c-1"), r.Decider.Type.ID("c-2"), r.Decider.Type.ID("c-3")}
	for range 2 {
		handle(t, r, allowing(ids[0]))
	}
	loads := store.loads.Load()
	for range 20 {
		handle(t, r, allowing(ids[0]))
	}
	require.Equal(t, loads, store.loads.Load(), "a hot aggregate costs one append")
	requireAt(t, r, ids[0], 22, 22)
	saved, err := r.Snapshots.Version(t.Context(), ids[0])
	require.NoError(t, err)
	require.Equal(t, 21, saved)
	for _, id := range ids[1:] {
		handle(t, r, allowing(id))
	}
	loads = store.loads.Load()
	handle(t, r, allowing(ids[0])) // it had to go
	require.Equal(t, loads+1, store.loads.Load(), "no more are kept than asked for")
}

func allowing(id es.AggregateID) es.Command {
	c := es.NewCommand(id, add{1})
	c.AllowCreate = true
	return c
}

func TestOldKeptAggregateIsNoAnswer(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		command es.Command
		version int
		kind    error
	}{
		"a refusal that is none by now":     {es.Command{Body: add{-40}}, 4, nil},
		"an expected version of today":      {es.Command{Body: add{1}, Expected: new(3)}, 4, nil},
		"an append that conflicts":          {es.Command{Body: add{1}}, 4, nil},
		"a refusal for good":                {es.Command{Body: add{-99}}, 3, errNegative},
		"nothing to do, at today's version": {es.Command{Body: add{0}}, 3, nil},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, _ := newRepository()
			r.Cached = 10
			id := r.Decider.Type.ID("c-1")
			grow(t, r, id, 1)
			other := peer(r)
			handle(t, other, es.NewCommand(id, add{50}))
			handle(t, other, es.NewCommand(id, add{1}))
			c.command.Aggregate = id
			got, err := r.Handle(t.Context(), c.command)
			require.ErrorIs(t, err, c.kind)
			require.Equal(t, c.version, got.Version)
			s, err := other.Load(t.Context(), id)
			require.NoError(t, err)
			grow(t, r, id, 1)
			requireAt(t, other, id, s.Version+1, s.State.Value+1)
		})
	}
}

func TestKeptAggregatesOfManyHandlers(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	r.Cached, r.Attempts = 3, 1000
	done := make(chan error, 8)
	for i := range cap(done) {
		go func() {
			for n := range 50 {
				if _, err := r.Handle(t.Context(), allowing(r.Decider.Type.ID(fmt.Sprint((i+n)%5)))); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
	for i := range 5 {
		requireAt(t, r, r.Decider.Type.ID(fmt.Sprint(i)), 80, 80)
	}
}
