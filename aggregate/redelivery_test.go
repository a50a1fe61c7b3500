package aggregate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/snapshot"
)

// snapshotting are ways to keep snapshots, whose outcome must not differ.
var snapshotting = map[string]es.SnapshotStrategy{
	"no snapshots": snapshot.Off(), "every commit": snapshot.EveryCommit(), "every third": everyThird,
}

func TestRedeliveredCommandIsASuccessWithItsVersion(t *testing.T) {
	t.Parallel()
	refuses := func(counter, es.Command) (es.Events, error) { return nil, errNegative }
	has := func(counter, es.Command) (es.Events, error) { return nil, nil }
	panics := func(counter, es.Command) (es.Events, error) { panic("boom") }
	for what, since := range map[string]func(t *testing.T, r *repository, id es.AggregateID){
		"nothing since":     func(*testing.T, *repository, es.AggregateID) {},
		"later versions":    func(t *testing.T, r *repository, id es.AggregateID) { grow(t, r, id, 7) },
		"now a refusal":     func(t *testing.T, r *repository, _ es.AggregateID) { r.Decider.Decide = refuses },
		"now nothing to do": func(t *testing.T, r *repository, _ es.AggregateID) { r.Decider.Decide = has },
		"now a panic":       func(t *testing.T, r *repository, _ es.AggregateID) { r.Decider.Decide = panics },
		"the aggregate deleted": func(t *testing.T, r *repository, id es.AggregateID) {
			handle(t, r, es.NewCommand(id, es.DeleteAggregate{}))
		},
		"another owner by now":   func(t *testing.T, r *repository, id es.AggregateID) { handle(t, r, es.NewCommand(id, give{"bob"})) },
		"a rival at the append":  func(t *testing.T, r *repository, id es.AggregateID) { rival(t, r, id) },
		"conflicts all the time": func(_ *testing.T, r *repository, _ es.AggregateID) { fail(r, es.ErrVersionConflict) },
		"replies lost for good":  func(_ *testing.T, r *repository, _ es.AggregateID) { fail(r, es.ErrUncertain) },
	} {
		for how, strategy := range snapshotting {
			t.Run(what+", "+how, func(t *testing.T) {
				t.Parallel()
				r, store := newRepository()
				r.Snapshots, r.Strategy, r.Attempts = newFaulty(), strategy, 3
				id := r.Decider.Type.ID("c-1")
				create := es.NewCreateCommand(id, add{3})
				create.ID, create.OwnerID = "create", "ann"
				handle(t, r, create)
				plain, expected := es.NewCommand(id, add{4}), es.NewCommand(id, add{5})
				plain.ID, plain.OwnerID, expected.ID = "plain", "ann", "expected"
				expecting(2)(&expected)
				handle(t, r, plain)
				handle(t, r, expected)
				since(t, r, id)

				value, version := current(t, r, id)
				for i, c := range []es.Command{create, plain, expected} {
					for range 2 {
						require.Equal(t, es.Result{Aggregate: id, Version: i + 1, Duplicate: true}, handle(t, r, c))
					}
				}
				again, latest := current(t, r, id)
				require.Equal(t, value, again, "nothing was done twice")
				require.Equal(t, version+store.rivals, latest)
			})
		}
	}
}

func current(t *testing.T, r *repository, id es.AggregateID) (adds, version int) {
	t.Helper()
	got, err := r.Load(t.Context(), id)
	require.NoError(t, err)
	for _, n := range got.State.Steps {
		if n > 1 {
			adds++
		}
	}
	return adds, got.Version
}

// rival lets another one add 1 just before each append from now on.
func rival(t *testing.T, r *repository, id es.AggregateID) {
	w, _ := r.Store.(*watched)
	other := &repository{Decider: r.Decider, Store: w.EventStore}
	w.before = func(es.Commit) error {
		handle(t, other, es.NewCommand(id, add{1}))
		w.rivals++
		return nil
	}
}

// fail makes each append from now on fail.
func fail(r *repository, err error) {
	w, _ := r.Store.(*watched)
	w.before = func(es.Commit) error { return err }
}

func TestRefusalIsNotReportedBeforeTheRequestWasLookedUp(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 1)
	down := &unfindable{watched: store}
	r.Store = down
	for name, body := range map[string]add{"refusal": {-9}, "empty": {0}} {
		_, err := r.Handle(t.Context(), es.NewCommand(id, body))
		require.ErrorIs(t, err, es.ErrUnavailable, name)
		require.NotErrorIs(t, err, es.ErrRefused, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
	_, err := r.Handle(t.Context(), es.NewCreateCommand(id, add{1}))
	require.ErrorIs(t, err, es.ErrUnavailable)
	require.ErrorIs(t, err, es.ErrVersionConflict)
	require.NotErrorIs(t, err, es.ErrRefused)
	fail(&repository{Store: store}, es.ErrUncertain)
	_, err = r.Handle(t.Context(), es.NewCommand(id, add{1}))
	require.ErrorIs(t, err, es.ErrUncertain, "what may have happened stays said")
}

// unfindable is a store whose server went away before the look-up.
type unfindable struct{ *watched }

func (unfindable) FindRequest(context.Context, es.AggregateID, string) (es.Commit, error) {
	return es.Commit{}, es.ErrUnavailable
}

func TestLostReplyOfAnAppendIsFoundOut(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]es.Command{"create": {Create: true, Body: add{2}}, "allowed": {AllowCreate: true, Body: add{2}}} {
		r, store := newRepository()
		c.Aggregate = r.Decider.Type.ID("c-1")
		store.before = func(commit es.Commit) error {
			store.before = nil
			_, err := store.EventStore.Append(t.Context(), es.AppendOptions{}, commit)
			return errors.Join(err, es.ErrUncertain)
		}
		require.Equal(t, es.Result{Aggregate: c.Aggregate, Version: 1, Duplicate: true}, handle(t, r, c), what)
		require.EqualValues(t, 2, store.appends.Load(), what)
		requireAt(t, r, c.Aggregate, 1, 2)
	}
}

func TestLostReplyOfAnAppendThatDidNotHappen(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	store.before = func(es.Commit) error { store.before = nil; return es.ErrUncertain }
	require.Equal(t, es.Result{Aggregate: id, Version: 1}, handle(t, r, es.NewCreateCommand(id, add{2})))

	fail(r, es.ErrUncertain)
	_, err := r.Handle(t.Context(), es.NewCommand(id, add{2}))
	require.ErrorIs(t, err, es.ErrUncertain)
	store.before = nil
	requireAt(t, r, id, 1, 2)
}

// Each costs what the client waits for a dead server. Conflicts in between do not count.
func TestUncertainOutcomesAreTriedAgainTwice(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		attempts, conflicts int
		want                int64
	}{"alone": {10, 0, 3}, "fewer attempts": {2, 0, 2}, "among conflicts": {10, 2, 9}} {
		r, store, id := rivalled(t, 1000)
		r.Attempts = c.attempts
		conflict, calls := store.before, 0
		store.before = func(commit es.Commit) error {
			if calls++; calls%(c.conflicts+1) == 0 {
				return es.ErrUncertain
			}
			return conflict(commit)
		}
		_, err := r.Handle(t.Context(), es.NewCommand(id, add{1}))
		require.ErrorIs(t, err, es.ErrUncertain, what)
		require.Equal(t, c.want, store.appends.Load(), what)
	}
}
