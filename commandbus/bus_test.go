package commandbus_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

type pay struct{ Cents int }

func (pay) CommandName() string { return "pay" }

func TestEveryCommandIsHandledOnceAndInItsAggregatesOrder(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := es.AggregateType{Context: "commandbus", Name: fmt.Sprintf("t%d", time.Now().UnixNano())}
		bus := commandbus.New(rdb, wire.JSON(es.Types{Aggregate: typ, Commands: []es.Type{{Body: pay{}}}}))
		ctx, cancel := context.WithCancel(t.Context())
		sub := es.Subscription{Group: commandbus.Group("commandbus"), Aggregates: []es.AggregateType{typ}}
		require.NoError(t, bus.Prepare(ctx, sub))
		var handled atomic.Int64
		var last [10]atomic.Int64
		ended := make(chan error, 1)
		go func() {
			ended <- bus.Subscribe(ctx, sub, func(_ context.Context, c es.Command) (es.Result, error) {
				n := c.Body.(pay).Cents
				if before := last[n%10].Swap(int64(n)); before > int64(n) {
					t.Errorf("%d came after %d", n, before)
				}
				handled.Add(1)
				return es.Result{}, nil
			})
		}()
		for n := 1; n <= 500; n++ {
			require.NoError(t, bus.Send(ctx, es.NewCommand(typ.ID(fmt.Sprint("a-", n%10)), pay{n})))
		}
		require.Eventually(t, func() bool { return handled.Load() == 500 }, 10*time.Second, 5*time.Millisecond)
		topic := typ.String() + ":command"
		require.Eventually(t, func() bool { return rdb.XPending(ctx, topic, sub.Group).Val().Count == 0 }, 5*time.Second, 5*time.Millisecond)
		start := time.Now()
		cancel()
		require.NoError(t, <-ended)
		t.Log("stopped in", time.Since(start))
	})
}
