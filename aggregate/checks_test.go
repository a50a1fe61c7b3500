package aggregate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// owned is an aggregate at version 1 that belongs to ann, in the space "s-1".
func owned(t *testing.T) (*repository, *watched, es.AggregateID) {
	t.Helper()
	r, store := newRepository()
	c := es.NewCreateCommand(r.Decider.Type.ID("c-1"), add{1})
	c.OwnerID, c.SpaceID, c.Header = "ann", "s-1", es.Header{{Key: es.HeaderOperator, Value: "kim"}}
	handle(t, r, c)
	return r, store, c.Aggregate
}

// refusal is a command and the first reason there is against it.
type refusal struct {
	edit func(*es.Command)
	kind error
}

func requireRefusals(t *testing.T, r *repository, id es.AggregateID, body es.CommandBody, refusals map[string]refusal) {
	t.Helper()
	for what, f := range refusals {
		c := es.NewCommand(id, body)
		f.edit(&c)
		_, err := r.Handle(t.Context(), c)
		require.ErrorIs(t, err, f.kind, what)
		require.ErrorIs(t, err, es.ErrRefused, what)
	}
}

func expecting(version int) func(*es.Command) { return func(c *es.Command) { c.Expected = &version } }

func theirs(c *es.Command)       { c.OwnerID, c.SpaceID = "bob", "s-2" }
func elsewhere(c *es.Command)    { c.OwnerID, c.SpaceID = "ann", "s-2" }
func mine(c *es.Command)         { c.OwnerID, c.SpaceID = "ann", "s-1" }
func allExpecting(c *es.Command) { theirs(c); expecting(7)(c) }

func TestWhatIsNotThereIsARefusal(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	requireRefusals(t, r, r.Decider.Type.ID("c-1"), add{1}, map[string]refusal{
		"not found":          {theirs, es.ErrNotFound},
		"expected and gone":  {expecting(3), es.ErrExpectedVersion},
		"expected, allowed":  {func(c *es.Command) { c.AllowCreate = true; expecting(3)(c) }, es.ErrExpectedVersion},
		"expected, creating": {func(c *es.Command) { c.Create = true; expecting(3)(c) }, es.ErrExpectedVersion},
	})
	requireRefusals(t, r, r.Decider.Type.ID("c-1"), es.RecoverAggregate{}, map[string]refusal{"not found": {mine, es.ErrNotFound}})
	require.Zero(t, store.appends.Load())
}

func TestChecksComeInWowsOrder(t *testing.T) {
	t.Parallel()
	r, store, id := owned(t)
	live := map[string]refusal{
		"expected version first": {allExpecting, es.ErrExpectedVersion},
		"then the owner":         {theirs, es.ErrWrongOwner},
		"then the space":         {elsewhere, es.ErrWrongSpace},
	}
	requireRefusals(t, r, id, add{1}, live)
	requireRefusals(t, r, id, es.RecoverAggregate{}, live)
	requireRefusals(t, r, id, es.RecoverAggregate{}, map[string]refusal{"not deleted": {mine, es.ErrNotDeleted}})

	require.Equal(t, 2, handle(t, r, es.NewCommand(id, es.DeleteAggregate{})).Version)
	requireRefusals(t, r, id, add{1}, live)
	for _, body := range []es.CommandBody{add{1}, add{-9}, es.DeleteAggregate{}, es.ApplyResourceTags{}} {
		requireRefusals(t, r, id, body, map[string]refusal{"deleted": {mine, es.ErrDeleted}})
	}
	requireRefusals(t, r, id, es.RecoverAggregate{}, map[string]refusal{
		"expected version first": {allExpecting, es.ErrExpectedVersion}, "then the owner": {theirs, es.ErrWrongOwner},
	})
	require.EqualValues(t, 2, store.appends.Load())

	c := es.NewCommand(id, add{1})
	mine(&c)
	handle(t, r, es.NewCommand(id, es.RecoverAggregate{}))
	expecting(3)(&c)
	require.Equal(t, 4, handle(t, r, c).Version)
}

func TestBlankOwnerAndSpaceAreNone(t *testing.T) {
	t.Parallel()
	r, store, id := owned(t)
	c := es.NewCommand(id, add{1})
	c.OwnerID, c.SpaceID = " ", "\t"
	handle(t, r, c)
	last, err := store.Last(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []string{"ann", "s-1"}, []string{last.OwnerID, last.SpaceID})
}

func TestAllowCreateCreatesOnceAndThenGoesOn(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 3)
	requireAt(t, r, id, 3, 3)
}

func TestCreatingWhatIsThereIsARefusalAndNotTriedAgain(t *testing.T) {
	t.Parallel()
	r, store, id := owned(t)
	for name, c := range map[string]es.Command{
		"create":     es.NewCreateCommand(id, add{1}),
		"expected 0": {Aggregate: id, Body: add{1}, Expected: new(int)},
	} {
		before := store.appends.Load()
		_, err := r.Handle(t.Context(), c)
		require.ErrorIs(t, err, es.ErrVersionConflict, name)
		require.ErrorIs(t, err, es.ErrRefused, name)
		require.Equal(t, before+1, store.appends.Load(), name)
	}
	require.Zero(t, store.loads.Load(), "who creates loads nothing")

	allow := es.NewCommand(id.InTenant("other"), add{1})
	allow.AllowCreate = true
	for _, c := range []es.Command{es.NewCreateCommand(id.InTenant("other"), add{1}), allow} {
		_, err := r.Handle(t.Context(), c)
		require.ErrorIs(t, err, es.ErrDuplicateAggregate)
		require.ErrorIs(t, err, es.ErrRefused)
	}
	requireAt(t, r, id, 1, 1)
}

func TestMetaFollowsTheCommits(t *testing.T) {
	t.Parallel()
	r, store, id := owned(t)
	tag := es.NewCommand(id, es.ApplyResourceTags{Tags: es.Tags{"team": {"a"}}})
	tag.Header = es.Header{{Key: es.HeaderOperator, Value: "lee"}}
	handle(t, r, tag)
	handle(t, r, es.NewCommand(id, es.DeleteAggregate{}))
	got, err := r.Load(t.Context(), id)
	require.NoError(t, err)
	first, err := store.Find(t.Context(), id, 1)
	require.NoError(t, err)
	last, err := store.Last(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, es.Meta{
		Aggregate: id, OwnerID: "ann", SpaceID: "s-1", Version: 3, EventID: last.ID, FirstOperator: "kim", Operator: "",
		FirstEventTime: first.CreateTime, EventTime: last.CreateTime, Tags: es.Tags{"team": {"a"}}, Deleted: true,
	}, got.Meta)
	require.Equal(t, 1, got.State.Value, "the state keeps everything")

	handle(t, r, es.NewCommand(id, es.RecoverAggregate{}))
	got, err = r.Load(t.Context(), id)
	require.NoError(t, err)
	require.False(t, got.Deleted)
}

func TestOwnerAndSpaceAreTransferredByEvents(t *testing.T) {
	t.Parallel()
	r, store, id := owned(t)
	c := es.NewCommand(id, give{"bob"})
	mine(&c)
	handle(t, r, c)
	transfer, err := store.Last(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "ann", transfer.OwnerID, "it was hers to give")
	handle(t, r, es.NewCommand(id, move{"s-2"}))
	requireRefusals(t, r, id, add{1}, map[string]refusal{"the old owner": {mine, es.ErrWrongOwner}})

	c = es.NewCommand(id, add{1})
	theirs(&c)
	require.Equal(t, 4, handle(t, r, c).Version)
	handle(t, r, es.NewCommand(id, add{1}))
	last, err := store.Last(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []string{"bob", "s-2"}, []string{last.OwnerID, last.SpaceID}, "a commit says whose it is")
	got, err := r.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []string{"bob", "s-2"}, []string{got.OwnerID, got.SpaceID})
}
