package aggregate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

func TestCommandsAreDecidedAndStoredAsCommits(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	before := time.Now().Truncate(time.Millisecond)
	require.Equal(t, es.Result{Aggregate: id, Version: 1}, handle(t, r, es.NewCreateCommand(id, add{5})))
	c := es.NewCommand(id, add{2})
	c.ID, c.RequestID, c.OwnerID = "command-2", "request-2", ""
	require.Equal(t, es.Result{Aggregate: id, Version: 2}, handle(t, r, c))

	last, err := store.Last(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 2, last.Version)
	require.Equal(t, "command-2", last.CommandID)
	require.Equal(t, "request-2", last.RequestID)
	require.Len(t, last.Events, 1)
	require.Equal(t, es.Event{
		ID: last.Events[0].ID, Name: "added", Revision: es.DefaultRevision, Body: added{2},
		Aggregate: id, Version: 2, Sequence: 1, Last: true, Time: last.CreateTime,
	}, last.Events[0])
	require.NotEqual(t, last.ID, last.Events[0].ID)
	require.False(t, last.CreateTime.Before(before) || last.CreateTime.After(time.Now()))

	got, err := r.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, counter{7, []int{5, 2}}, got.State)
	require.Equal(t, last.ID, got.EventID)
	require.Equal(t, 2, got.Version)
	require.Zero(t, got.SnapshotTime)
}

func TestEventsOfOneDecisionAreOneCommit(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	r.Decider.Decide = func(counter, es.Command) (es.Events, error) { return es.Events{added{1}, added{2}, added{3}}, nil }
	id := r.Decider.Type.ID("c-1")
	require.Equal(t, 1, handle(t, r, es.NewCreateCommand(id, add{9})).Version)
	requireAt(t, r, id, 1, 6)
	c, err := store.Find(t.Context(), id, 1)
	require.NoError(t, err)
	ids := map[string]bool{c.ID: true}
	for i, e := range c.Events {
		require.Equal(t, i+1, e.Sequence)
		require.Equal(t, i == 2, e.Last)
		ids[e.ID] = true
	}
	require.Len(t, ids, 4, "each has an id of its own")
}

func TestEmptyDecisionIsSuccessAtTheVersionFound(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	first := es.NewCommand(id, add{0})
	first.AllowCreate = true
	require.Equal(t, es.Result{Aggregate: id}, handle(t, r, first))
	grow(t, r, id, 3)
	require.Equal(t, es.Result{Aggregate: id, Version: 3}, handle(t, r, es.NewCommand(id, add{0})))
	require.EqualValues(t, 3, store.appends.Load())
}

func TestVoidCommandIsNobodysToCarryOut(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	c := es.NewCreateCommand(r.Decider.Type.ID("c-1"), add{1})
	c.Void = true
	require.Equal(t, es.Result{Aggregate: c.Aggregate}, handle(t, r, c))
	require.Zero(t, store.appends.Load())
}

func TestDecidersErrorIsARefusal(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 2)
	c := es.NewCommand(id, add{-9})
	c.RequestID = "request-9"
	result, err := r.Handle(t.Context(), c)
	require.ErrorIs(t, err, es.ErrRefused)
	require.ErrorIs(t, err, errNegative)
	require.Equal(t, es.Result{Aggregate: id, Version: 2}, result)
	var at *es.Error
	require.ErrorAs(t, err, &at)
	require.Equal(t, "handle add", at.Op)
	require.Equal(t, id, at.Aggregate)
	require.Equal(t, 2, at.Version)
	require.Equal(t, "request-9", at.RequestID)
	require.EqualValues(t, 2, store.appends.Load())
	requireAt(t, r, id, 2, 2)
}

func TestRefusalWithEventsStoresNone(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	r.Decider.Decide = func(counter, es.Command) (es.Events, error) { return es.Events{added{1}, nil}, errNegative }
	_, err := r.Handle(t.Context(), es.NewCreateCommand(r.Decider.Type.ID("c-1"), add{1}))
	require.ErrorIs(t, err, es.ErrRefused)
	require.ErrorIs(t, err, errNegative)
	require.Zero(t, store.appends.Load())
}

func TestCommandsThatNothingCanBeDecidedAbout(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id, negative := r.Decider.Type.ID("c-1"), -1
	for what, c := range map[string]struct {
		command es.Command
		kind    error
	}{
		"of another type":      {es.NewCreateCommand(newType().ID("c-1"), add{1}), es.ErrInvalid},
		"of an unknown type":   {es.Command{Aggregate: id, Create: true, Name: "multiply", Body: es.Raw(`{}`)}, es.ErrUnknownType},
		"without a body":       {es.Command{Aggregate: id, Create: true, Name: "add"}, es.ErrInvalid},
		"without an id":        {es.NewCreateCommand(r.Decider.Type.ID(""), add{1}), es.ErrInvalid},
		"expecting what can't": {es.Command{Aggregate: id, Expected: &negative, Body: add{1}}, es.ErrInvalid},
	} {
		_, err := r.Handle(t.Context(), c.command)
		require.ErrorIs(t, err, c.kind, what)
		require.NotErrorIs(t, err, es.ErrRefused, what)
		var at *es.Error
		require.ErrorAs(t, err, &at, what)
		require.Equal(t, c.command.Aggregate, at.Aggregate, what)
	}
	require.Zero(t, store.appends.Load()+store.loads.Load()+store.lookups.Load())
}

func TestAggregateOfAnotherTypeIsNotLoaded(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := newType().ID("c-1")
	stranger := &repository{Decider: deciderOf(id.Type), Store: store}
	grow(t, stranger, id, 2)
	_, err := r.Load(t.Context(), id)
	require.ErrorIs(t, err, es.ErrInvalid)
	_, err = r.LoadVersion(t.Context(), id, 1)
	require.ErrorIs(t, err, es.ErrInvalid)
	_, err = r.Fold(id, store.Load(t.Context(), id, es.Versions{}))
	require.ErrorIs(t, err, es.ErrInvalid)
}

func TestLoadOfNothingIsNotFound(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	id := r.Decider.Type.ID("c-1")
	got, err := r.Load(t.Context(), id)
	require.ErrorIs(t, err, es.ErrNotFound)
	require.Zero(t, got)
	var at *es.Error
	require.ErrorAs(t, err, &at)
	require.Equal(t, id, at.Aggregate)
}

func TestFaultsOfTheStoreAreReturned(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 1)
	store.before = func(es.Commit) error { return es.ErrOutOfMemory }
	_, err := r.Handle(t.Context(), es.NewCommand(id, add{1}))
	require.ErrorIs(t, err, es.ErrOutOfMemory)
	require.NotErrorIs(t, err, es.ErrRefused)
	require.EqualValues(t, 2, store.appends.Load(), "it is not tried again")
	require.Zero(t, store.lookups.Load())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Handle(ctx, es.NewCommand(id, add{1}))
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.Load(ctx, id)
	require.ErrorIs(t, err, context.Canceled)
}

func TestRepositoriesMakeIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	n := 0
	r.NewID = func() string { n++; return string(rune('a' + n)) }
	handle(t, r, es.NewCreateCommand(r.Decider.Type.ID("c-1"), add{1}))
	c, err := store.Last(t.Context(), r.Decider.Type.ID("c-1"))
	require.NoError(t, err)
	require.Equal(t, []string{"b", "b", "c", "d"}, []string{c.CommandID, c.RequestID, c.ID, c.Events[0].ID})

	ids := map[string]bool{}
	for range 5 {
		other := &repository{Decider: r.Decider, Store: memory.NewEventStore()}
		grow(t, other, other.Decider.Type.ID("c-1"), 1)
		c, err := other.Store.Last(t.Context(), other.Decider.Type.ID("c-1"))
		require.NoError(t, err)
		ids[c.ID] = true
	}
	require.Len(t, ids, 5)
}
