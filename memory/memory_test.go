package memory_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/memory"
)

var (
	_ es.CommandSender     = (*memory.CommandBus)(nil)
	_ es.CommandSubscriber = (*memory.CommandBus)(nil)
	_ es.EventPublisher    = (*memory.EventBus)(nil)
	_ es.EventSubscriber   = (*memory.EventBus)(nil)
	_ es.StatePublisher    = (*memory.StateBus)(nil)
	_ es.StateSubscriber   = (*memory.StateBus)(nil)
)

func TestALoopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	store := memory.NewEventStore()
	for version := 1; version <= 3; version++ {
		c := commit("a", version)
		c.RequestID += string(rune('0' + version))
		_, err := store.Append(t.Context(), es.AppendOptions{}, c)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []error
	for _, err := range store.Load(ctx, orders.ID("a"), es.Versions{}) {
		cancel()
		got = append(got, err)
	}
	require.Len(t, got, 2)
	require.NoError(t, got[0])
	require.ErrorIs(t, got[1], context.Canceled)
}

func TestAPreparedValueThatCannotBeReadIsCorrupt(t *testing.T) {
	t.Parallel()
	p := memory.NewPrepareKey[estest.Seal]()
	done, err := p.Prepare(t.Context(), "k", estest.Broken, 0)
	require.NoError(t, err)
	require.True(t, done)
	_, err = p.Get(t.Context(), "k")
	require.ErrorIs(t, err, es.ErrCorrupt)
	done, err = p.RollbackFrom(t.Context(), "k", estest.Broken)
	require.NoError(t, err)
	require.True(t, done, "it can still be freed by its bytes")
}

func TestAReaderThatStopsBetweenAttemptsGivesTheMessageBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewCommandBus()
		for n := range 2 {
			require.NoError(t, b.Send(t.Context(), command("a", n)))
		}
		ctx, stop := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			failed <- b.Subscribe(ctx, sub("g", orders), func(context.Context, es.Command) (es.Result, error) {
				return es.Result{}, es.RetryAfter(errOops, 1e15)
			})
		}()
		synctest.Wait()
		stop()
		require.NoError(t, <-failed)
		var in inbox
		read(t, func(ctx context.Context) error { return b.Subscribe(ctx, sub("g", orders), in.handle) })
		require.Equal(t, []string{"a 0", "a 1"}, in.got)
	})
}
