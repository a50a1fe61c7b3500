package replay_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/replay"
	"github.com/headwater-go/headwater/examples/order-service/shop"
	"github.com/headwater-go/headwater/memory"
)

func prefix(t *testing.T, n int) []es.Command {
	t.Helper()
	entries, err := replay.Log()
	require.NoError(t, err)
	return replay.Commands(entries)[:n]
}

func TestReplayTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	s, commands := shop.New(memory.NewEventStore()), prefix(t, 3000)

	var done atomic.Int64
	first, err := replay.Run(t.Context(), s.Handle, commands, 8, &done)
	require.NoError(t, err)
	require.Equal(t, replay.Tally{Applied: 3000, Refused: map[string]int{}}, first)
	require.EqualValues(t, 3000, done.Load())
	before, err := s.Count(t.Context(), 8)
	require.NoError(t, err)

	second, err := replay.Run(t.Context(), s.Handle, commands, 3, new(atomic.Int64))
	require.NoError(t, err)
	require.Equal(t, replay.Tally{Duplicates: 3000, Refused: map[string]int{}}, second)
	after, err := s.Count(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// The payment comes too early and is refused. When the replay comes by again the order
// is confirmed, and the payment must be refused all the same.
func TestRefusedCommandStaysRefused(t *testing.T) {
	t.Parallel()
	entries, err := replay.Read(strings.NewReader(header +
		"1,place order,2019-05-20T07:07:47Z,o1,i1,,1,9.90\n" +
		"2,pay order,2019-05-20T08:07:47Z,o1,,,1,9.90\n" +
		"3,confirm order,2019-05-20T09:07:47Z,o1,,,1,9.90\n"))
	require.NoError(t, err)
	s, commands := shop.New(memory.NewEventStore()), replay.Commands(entries)

	first, err := replay.Run(t.Context(), s.Handle, commands, 2, new(atomic.Int64))
	require.NoError(t, err)
	require.Equal(t, replay.Tally{Applied: 3, Refused: map[string]int{order.ErrNotConfirmed.Error(): 1}}, first)

	second, err := replay.Run(t.Context(), s.Handle, commands, 2, new(atomic.Int64))
	require.NoError(t, err)
	require.Equal(t, 3, second.Duplicates)
	require.Equal(t, 1, second.Refusals())
	require.Zero(t, second.Applied)
	o, err := s.Orders.Load(t.Context(), order.Type.ID("o1"))
	require.NoError(t, err)
	require.Equal(t, order.StatusConfirmed, o.State.Status)
}

func TestReplayStopsAtTheFirstFaultAndGoesOn(t *testing.T) {
	t.Parallel()
	s, commands := shop.New(memory.NewEventStore()), prefix(t, 1000)
	broken := errors.New("the server is gone")
	var calls atomic.Int64
	faulty := func(ctx context.Context, c es.Command) (es.Result, error) {
		if calls.Add(1) > 400 {
			return es.Result{}, broken
		}
		return s.Handle(ctx, c)
	}
	tally, err := replay.Run(t.Context(), faulty, commands, 4, new(atomic.Int64))
	require.ErrorIs(t, err, broken)
	require.LessOrEqual(t, tally.Applied, 400)
	require.Less(t, calls.Load(), int64(1000))

	rest, err := replay.Run(t.Context(), s.Handle, commands, 4, new(atomic.Int64))
	require.NoError(t, err)
	require.Equal(t, 1000, rest.Applied+rest.Duplicates)
	require.GreaterOrEqual(t, rest.Duplicates, tally.Applied)
}

func TestInterruptedReplayGoesOn(t *testing.T) {
	t.Parallel()
	s, commands := shop.New(memory.NewEventStore()), prefix(t, 1000)
	ctx, interrupt := context.WithCancel(t.Context())
	var calls atomic.Int64
	tally, err := replay.Run(ctx, func(ctx context.Context, c es.Command) (es.Result, error) {
		if calls.Add(1) == 300 {
			interrupt()
		}
		return s.Handle(ctx, c)
	}, commands, 4, new(atomic.Int64))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, tally.Commands(), 1000)

	rest, err := replay.Run(t.Context(), s.Handle, commands, 4, new(atomic.Int64))
	require.NoError(t, err)
	require.Equal(t, 1000, rest.Applied+rest.Duplicates)
	require.GreaterOrEqual(t, rest.Duplicates, tally.Applied)
}

func TestOneAggregateKeepsTheLogsOrder(t *testing.T) {
	t.Parallel()
	commands := prefix(t, 5000)
	var mu sync.Mutex
	got := map[es.AggregateID][]string{}
	_, err := replay.Run(t.Context(), func(_ context.Context, c es.Command) (es.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		got[c.Aggregate] = append(got[c.Aggregate], c.RequestID)
		return es.Result{}, nil
	}, commands, 16, new(atomic.Int64))
	require.NoError(t, err)
	want := map[es.AggregateID][]string{}
	for _, c := range commands {
		want[c.Aggregate] = append(want[c.Aggregate], c.RequestID)
	}
	require.Equal(t, want, got)
}
