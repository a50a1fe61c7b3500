package memory_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

func commit(id string, version int) es.Commit {
	return es.Commit{
		ID: id + "-commit", Aggregate: orders.ID(id), CommandID: "c", RequestID: "r", Version: version,
		Header: es.Header{{Key: "k", Value: "v"}}, CreateTime: time.Now(),
		Events: []es.Event{es.NewEvent("e1", step{version}), es.NewEvent("e2", step{version})},
	}
}

func TestSentCommandsAreCompleteCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewCommandBus()
		sent := es.NewCreateCommand(orders.ID("a"), step{1})
		sent.Header = es.Header{{Key: "k", Value: "v"}}
		require.NoError(t, b.Send(t.Context(), sent))
		require.Empty(t, sent.ID, "the sender's own is not filled")
		sent.Header[0].Value, *sent.Expected = "changed after", 7
		var got []es.Command
		handle := func(_ context.Context, c es.Command) (es.Result, error) {
			got = append(got, c)
			require.Equal(t, "v", c.Header.Get("k"))
			require.Equal(t, 0, *c.Expected)
			c.Header[0].Value, *c.Expected = "changed by a reader", 8
			return es.Result{}, nil
		}
		for _, group := range []string{"a", "b"} {
			read(t, func(ctx context.Context) error { return b.Subscribe(ctx, sub(group, orders), handle) })
		}
		require.Len(t, got, 2)
		require.NoError(t, got[0].Validate())
		require.Equal(t, got[0].ID, got[0].RequestID)
		require.Equal(t, got[0].ID, got[1].ID)
		require.Equal(t, "step", got[0].Name)
		require.Zero(t, got[0].CreateTime.Nanosecond()%1e6, "milliseconds")
	})
}

func fromBeginning(group string) es.Subscription {
	s := sub(group, orders)
	s.Start = es.FromBeginning
	return s
}

func TestPublishedCommitsAreDerivedCopiesInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewEventBus()
		first, second := commit("a", 1), commit("a", 2)
		require.NoError(t, b.Publish(t.Context(), first, second))
		require.NoError(t, b.Publish(t.Context()), "nothing to publish")
		first.Events[0].Body = step{99}
		for _, group := range []string{"a", "b"} {
			var got []es.Commit
			read(t, func(ctx context.Context) error {
				return b.Subscribe(ctx, fromBeginning(group), func(_ context.Context, c es.Commit) error {
					got = append(got, c)
					return nil
				})
			})
			require.Len(t, got, 2)
			require.Equal(t, []int{1, 2}, []int{got[0].Version, got[1].Version})
			require.Equal(t, step{1}, got[0].Events[0].Body)
			require.True(t, got[0].Events[1].Last)
			require.Equal(t, 2, got[1].Events[1].Version)
			got[0].Events[0].Body = step{100}
		}
	})
}

func TestPublishedStatesAreCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewStateBus()
		e := es.StateEvent{Commit: commit("a", 1), State: step{5}, Tags: es.Tags{"team": {"x"}}, FirstOperator: "ada"}
		require.NoError(t, b.Publish(t.Context(), e))
		e.Tags["team"][0] = "changed after"
		for _, group := range []string{"a", "b"} {
			var got []es.StateEvent
			read(t, func(ctx context.Context) error {
				return b.Subscribe(ctx, sub(group, orders), func(_ context.Context, e es.StateEvent) error {
					got = append(got, e)
					return nil
				})
			})
			require.Len(t, got, 1)
			require.Equal(t, step{5}, got[0].State)
			require.Equal(t, "ada", got[0].FirstOperator)
			require.Equal(t, es.Tags{"team": {"x"}}, got[0].Tags)
			got[0].Tags["team"][0] = "changed by a reader"
		}
	})
}

func TestBusesRefuseWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	commands, events, states := memory.NewCommandBus(), memory.NewEventBus(), memory.NewStateBus()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	noEvents, nan := commit("a", 1), commit("a", 1)
	noEvents.Events = nil
	nan.Events[0].Body = math.NaN()
	long := command(strings.Repeat("x", es.MaxIDBytes+1), 1)
	for what, c := range map[string]struct{ err, kind error }{
		"a command of nobody":      {commands.Send(t.Context(), command("", 1)), es.ErrInvalid},
		"a command to a long id":   {commands.Send(t.Context(), long), es.ErrTooLarge},
		"a command without a body": {commands.Send(t.Context(), es.Command{Aggregate: orders.ID("a")}), es.ErrInvalid},
		"a command, ctx closed":    {commands.Send(done, command("a", 1)), context.Canceled},
		"commits without events":   {events.Publish(t.Context(), commit("a", 1), noEvents), es.ErrInvalid},
		"commits of two":           {events.Publish(t.Context(), commit("a", 1), commit("b", 2)), es.ErrInvalid},
		"commits with NaN":         {events.Publish(t.Context(), nan), es.ErrInvalid},
		"commits, ctx closed":      {events.Publish(done, commit("a", 1)), context.Canceled},
		"a state without events":   {states.Publish(t.Context(), es.StateEvent{Commit: noEvents}), es.ErrInvalid},
		"a state with NaN":         {states.Publish(t.Context(), es.StateEvent{Commit: commit("a", 1), State: math.Inf(1)}), es.ErrInvalid},
		"a state, ctx closed":      {states.Publish(done, es.StateEvent{Commit: commit("a", 1)}), context.Canceled},
		"a group without a name":   {commands.Subscribe(t.Context(), sub("", orders), nil), es.ErrInvalid},
		"a group without types":    {events.Subscribe(t.Context(), sub("g"), nil), es.ErrInvalid},
		"a group of a bad type":    {states.Subscribe(t.Context(), sub("g", es.AggregateType{Context: "{"}), nil), es.ErrInvalid},
	} {
		require.ErrorIs(t, c.err, c.kind, what)
		var at *es.Error
		require.ErrorAs(t, c.err, &at, what)
	}
	require.NoError(t, commands.Subscribe(done, sub("g", orders), func(context.Context, es.Command) (es.Result, error) {
		t.Error("something was sent")
		return es.Result{}, nil
	}))
	require.NoError(t, events.Subscribe(done, sub("g", orders), nil))
}
