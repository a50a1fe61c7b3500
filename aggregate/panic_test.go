package aggregate_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var errInside = errors.New("from inside")

// nameless is an event whose method fails on a nil pointer, as generated code does.
type nameless struct{ name string }

func (n nameless) EventName() string { return n.name }

// broken is an event that panics where it says what it changes.
type broken struct{}

func (broken) EventName() string { return "broken" }
func (broken) ToOwnerID() string { panic(errInside) }

func requirePanic(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, es.ErrPanic)
	require.NotErrorIs(t, err, es.ErrRefused)
	require.ErrorContains(t, err, "panic_test.go:", "the stack says where")
	var at *es.Error
	require.ErrorAs(t, err, &at)
	require.Equal(t, "c-1", at.Aggregate.ID)
}

func TestPanicsOfADeciderAreFaultsAndWriteNothing(t *testing.T) {
	t.Parallel()
	for what, f := range map[string]struct {
		decide func(counter, es.Command) (es.Events, error)
		evolve func(counter, es.Event) counter
		text   string
		kind   error
	}{
		"decide, text":      {decide: func(counter, es.Command) (es.Events, error) { panic("boom") }, text: "decide add: boom"},
		"decide, error":     {decide: func(counter, es.Command) (es.Events, error) { panic(errInside) }, kind: errInside},
		"decide, a refusal": {decide: func(counter, es.Command) (es.Events, error) { panic(es.Refuse(errNegative)) }, text: errNegative.Error()},
		"decide, runtime": {decide: func(s counter, _ es.Command) (es.Events, error) {
			return es.Events{added{s.Steps[7]}}, nil
		}, text: "index out of range"},
		"a nil in a pointer": {decide: func(counter, es.Command) (es.Events, error) { return es.Events{(*nameless)(nil)}, nil }, text: "nil"},
		"evolve, text":       {evolve: func(counter, es.Event) counter { panic("boom") }, text: "evolve added: boom"},
		"evolve, error":      {evolve: func(counter, es.Event) counter { panic(errInside) }, kind: errInside},
		"a transfer":         {decide: func(counter, es.Command) (es.Events, error) { return es.Events{broken{}}, nil }, kind: errInside},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, store := newRepository()
			if f.decide != nil {
				r.Decider.Decide = f.decide
			}
			if f.evolve != nil {
				r.Decider.Evolve = f.evolve
			}
			id := r.Decider.Type.ID("c-1")
			_, err := r.Handle(t.Context(), es.NewCreateCommand(id, add{1}))
			requirePanic(t, err)
			require.ErrorContains(t, err, f.text)
			if f.kind != nil {
				require.ErrorIs(t, err, f.kind)
			}
			require.Zero(t, store.appends.Load())
			_, err = r.Load(t.Context(), id)
			require.ErrorIs(t, err, es.ErrNotFound)
		})
	}
}

func TestPanicInEvolveIsAFaultOfTheLoad(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 3)
	later := &repository{Decider: r.Decider, Store: store}
	later.Decider.Evolve = func(s counter, e es.Event) counter {
		if e.Version == 2 {
			panic(errInside)
		}
		return s
	}
	got, err := later.Load(t.Context(), id)
	requirePanic(t, err)
	require.ErrorIs(t, err, errInside)
	require.Zero(t, got, "nothing half-built")
	var at *es.Error
	require.ErrorAs(t, err, &at)
	require.Equal(t, 2, at.Version)
	_, err = later.Handle(t.Context(), es.NewCommand(id, add{1}))
	requirePanic(t, err)
	require.EqualValues(t, 3, store.appends.Load())
}

func TestEventsWithoutANameAreInvalid(t *testing.T) {
	t.Parallel()
	for what, events := range map[string]es.Events{
		"nil": {nil}, "nil among others": {added{1}, nil, added{2}}, "no name": {added{1}, nameless{}},
	} {
		r, store := newRepository()
		r.Decider.Decide = func(counter, es.Command) (es.Events, error) { return events, nil }
		_, err := r.Handle(t.Context(), es.NewCreateCommand(r.Decider.Type.ID("c-1"), add{1}))
		require.ErrorIs(t, err, es.ErrInvalid, what)
		require.NotErrorIs(t, err, es.ErrRefused, what)
		require.Zero(t, store.appends.Load(), what)
	}
}
