package commandbus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

func newType() es.AggregateType {
	return es.AggregateType{Context: "commandbus", Name: fmt.Sprintf("t%d", time.Now().UnixNano())}
}

// DUP-01: the client sends again what got no reply. Both are the same command, whose
// request id the store takes once.
func TestDUP01_ACommandThatWasAddedTwiceIsOneCommand(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(t *testing.T) (redis.UniversalClient, []*redistest.Proxy){
		"standalone": func(t *testing.T) (redis.UniversalClient, []*redistest.Proxy) {
			server := redistest.Shared(t)
			p := redistest.NewProxy(t, server.Addr)
			o := server.Options()
			o.Addr = p.Addr
			rdb := redis.NewClient(o)
			t.Cleanup(func() { _ = rdb.Close() })
			return rdb, []*redistest.Proxy{p}
		},
		"cluster": func(t *testing.T) (redis.UniversalClient, []*redistest.Proxy) {
			return redistest.ProxyCluster(t, redistest.SharedCluster(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb, proxies := client(t)
			typ := newType()
			bus := commandbus.New(rdb, wire.JSON(es.Types{Aggregate: typ, Commands: []es.Type{{Body: pay{}}}}))
			for _, p := range proxies {
				p.DropReply("XADD")
			}
			require.NoError(t, bus.Send(t.Context(), es.NewCommand(typ.ID("a-1"), pay{7})))
			require.EqualValues(t, 2, rdb.XLen(t.Context(), typ.String()+":command").Val(), "it was added twice")

			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var mu sync.Mutex
			var got []es.Command
			ended := make(chan error, 1)
			sub := es.Subscription{Group: "g", Aggregates: []es.AggregateType{typ}}
			go func() {
				ended <- bus.Subscribe(ctx, sub, func(_ context.Context, c es.Command) (es.Result, error) {
					mu.Lock()
					defer mu.Unlock()
					if got = append(got, c); len(got) == 2 {
						stop()
					}
					return es.Result{}, nil
				})
			}()
			require.NoError(t, <-ended)
			require.Len(t, got, 2)
			require.NotEmpty(t, got[0].RequestID)
			require.Equal(t, got[0].RequestID, got[1].RequestID)
			require.Equal(t, got[0].ID, got[1].ID)
		})
	}
}

// DUP-14: whoever subscribes gets a name that nobody else has, also on the same bus, and
// its end leaves alone what others have.
func TestDUP14_EachSubscriptionHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		topic := typ.String() + ":command"
		bus := commandbus.New(rdb, wire.JSON(es.Types{Aggregate: typ, Commands: []es.Type{{Body: pay{}}}}))
		sub := es.Subscription{Group: "g", Aggregates: []es.AggregateType{typ}, Workers: 1, Prefetch: 1, Grace: 10 * time.Second}
		require.NoError(t, bus.Prepare(t.Context(), sub))
		begun, release := make(chan string, 2), make(chan struct{})
		subscribe := func() (context.CancelFunc, chan error) {
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- bus.Subscribe(ctx, sub, func(_ context.Context, c es.Command) (es.Result, error) {
					begun <- c.Aggregate.ID
					<-release
					return es.Result{}, nil
				})
			}()
			return stop, ended
		}
		stop1, ended1 := subscribe()
		stop2, ended2 := subscribe()
		defer stop2()
		require.NoError(t, bus.Send(t.Context(), es.NewCommand(typ.ID("a-1"), pay{1})))
		require.NoError(t, bus.Send(t.Context(), es.NewCommand(typ.ID("a-2"), pay{2})))
		first := <-begun
		require.NotEqual(t, first, <-begun)
		owners := rdb.XPending(t.Context(), topic, "g").Val().Consumers
		require.Len(t, owners, 2, "each has one, under its own name")
		stop1()
		close(release)
		require.NoError(t, <-ended1)
		require.Eventually(t, func() bool { return rdb.XPending(t.Context(), topic, "g").Val().Count == 0 }, 10*time.Second, 5*time.Millisecond)
		stop2()
		require.NoError(t, <-ended2)
		require.EqualValues(t, 2, rdb.XInfoGroups(t.Context(), topic).Val()[0].EntriesRead, "both were read once")
	})
}
