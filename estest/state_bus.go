package estest

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var stateChecks = []check[StateBus]{
	{"a state event arrives whole", stateWhole},
	{"a state event that cannot be is refused before it is sent", stateInvalid},
}

// statesOf subscribes a new group and returns the n state events that arrive, and no more.
func statesOf(t *testing.T, k kit[StateBus], n int) []es.StateEvent {
	t.Helper()
	return arriving(t, n, func(ctx context.Context, got chan<- es.StateEvent) error {
		return k.store.Subscribe(ctx, newSubscription(k.typ), func(_ context.Context, e es.StateEvent) error {
			got <- e
			return nil
		})
	})
}

func stateWhole(t *testing.T, k kit[StateBus]) {
	sent := stateEventOf(k.typ.ID("订单-😀").InTenant("t-1"), 1)
	sent.Deleted = true
	sent.State = State{Data: "\x00\u2028<>&\"\\é😀\ufeff", Number: math.MinInt64, Items: []string{}, Labels: map[string]string{"": "x"}, Ratio: 0.1, Seal: "whole"}
	plain := stateEventOf(k.typ.ID("订单-😀").InTenant("t-1"), 2)
	plain.FirstOperator, plain.Tags = "", nil
	for i, want := range []es.StateEvent{sent, plain} {
		require.NoError(t, k.store.Publish(t.Context(), want))
		got := statesOf(t, k, i+1)[i]
		require.True(t, want.FirstEventTime.Equal(got.FirstEventTime))
		require.Equal(t, want, got)
	}
}

func stateInvalid(t *testing.T, k kit[StateBus]) {
	good := stateEventOf(k.typ.ID("a-1"), 1)
	bad := map[string]es.StateEvent{}
	for what, c := range badCommits(k.typ.ID("a-1")) {
		e := good
		e.Commit = c
		bad[what] = e
	}
	infinite, text := stateEventOf(k.typ.ID("a-1"), 2), stateEventOf(k.typ.ID("a-1"), 2)
	infinite.State, text.State = State{Ratio: math.Inf(1)}, State{Data: "a\xffb"}
	bad["an infinite state"], bad["a state with invalid text"] = infinite, text
	for what, e := range bad {
		t.Log(what)
		requireAt(t, k.store.Publish(t.Context(), e), es.ErrInvalid, es.Error{Aggregate: e.Aggregate, Version: e.Version, RequestID: e.RequestID})
	}
	large := stateEventOf(k.typ.ID("a-1"), 2)
	large.State = State{Data: strings.Repeat("x", 16<<20)}
	require.ErrorIs(t, k.store.Publish(t.Context(), large), es.ErrTooLarge)
	require.NoError(t, k.store.Publish(t.Context(), good))
	require.Equal(t, good, statesOf(t, k, 1)[0])
}
