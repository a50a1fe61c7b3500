package otel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
	"github.com/headwater-go/headwater/wire"
)

func TestMetricsOfAGroup(t *testing.T) {
	t.Parallel()
	rdb, kind := redistest.Shared(t).Client(t), freshType()
	k, bus := newKit(t, rdb), commandbus.New(rdb, wire.JSON(typesOf(kind)))
	bus.Observer, bus.Middleware = k, []es.Middleware{k.Middleware}
	topic := fmt.Sprintf("bank.%s:command", kind.Name)
	of := "{group=bank,topic=" + topic + "}"
	release := make(chan struct{})
	background(t, func(ctx context.Context) error {
		s := es.Subscription{Group: "bank", Aggregates: []es.AggregateType{kind}, Workers: 1, Prefetch: 1, MaxDeliveries: 1}
		return bus.Subscribe(ctx, s, func(_ context.Context, c es.Command) (es.Result, error) {
			<-release
			if c.Body.(deposit).Secret == "fails" {
				return es.Result{}, errors.New("no")
			}
			return es.Result{}, nil
		})
	})
	for _, secret := range []string{"a", "fails", "b"} {
		require.NoError(t, bus.Send(t.Context(), es.NewCommand(kind.ID("ann"), deposit{secret})))
	}
	require.NoError(t, rdb.XAdd(t.Context(), addOther(topic)).Err())
	eventually(t, "one is in flight", func() bool { return k.metrics(t)["headwater.in_flight"+of] == 1 })
	m := k.metrics(t)
	require.InDelta(t, 1, m["headwater.group.pending"+of], 0)
	require.InDelta(t, 3, m["headwater.group.lag"+of], 0)
	require.Contains(t, m, "headwater.group.oldest_pending"+of)
	require.InDelta(t, 1, m["headwater.subscription.healthy"+of], 0)
	require.InDelta(t, 3, m["headwater.published{topic="+topic+"}"], 0)

	close(release)
	eventually(t, "all is done", func() bool {
		m = k.metrics(t)
		lag, known := m["headwater.group.lag"+of]
		return known && lag == 0 && m["headwater.group.pending"+of] == 0
	})
	require.NotContains(t, m, "headwater.group.oldest_pending"+of, "nothing is pending")
	require.Zero(t, m["headwater.in_flight"+of])
	require.InDelta(t, 4, m["headwater.received"+of], 0)
	require.InDelta(t, 2, m["headwater.handled"+of], 0)
	require.InDelta(t, 2, m["headwater.handle.duration"+of], 0)
	require.InDelta(t, 1, m["headwater.failed{error.type=other,group=bank,topic="+topic+"}"], 0)
	require.InDelta(t, 1, m["headwater.dead_letters{group=bank,reason=limit,topic="+topic+"}"], 0)
	require.InDelta(t, 1, m["headwater.undecodable{group=bank,reason=missing_message_field,topic="+topic+"}"], 0)
}

func TestAnUnknownLagIsAbsent(t *testing.T) {
	t.Parallel()
	rdb, topic := redistest.Shared(t).Client(t), "lag.unknown:event"
	k := newKit(t, rdb)
	k.Observe(t.Context(), es.Subscribed{Topic: topic, Group: "g", Consumer: "c"})
	of := "{group=g,topic=" + topic + "}"
	require.NotContains(t, k.metrics(t), "headwater.group.lag"+of, "there is no stream")
	ids := []string{}
	for range 4 {
		id, err := rdb.XAdd(t.Context(), addOther(topic)).Result()
		require.NoError(t, err)
		ids = append(ids, id)
	}
	// Redis does not count what lies behind a group that begins in the middle.
	require.NoError(t, rdb.XGroupCreate(t.Context(), topic, "g", ids[1]).Err())
	m := k.metrics(t)
	require.NotContains(t, m, "headwater.group.lag"+of)
	require.Zero(t, m["headwater.group.pending"+of])
	require.Contains(t, m, "headwater.group.pending"+of)
	require.NoError(t, rdb.XGroupSetID(t.Context(), topic, "g", ids[3]).Err())
	m = k.metrics(t)
	require.Contains(t, m, "headwater.group.lag"+of, "who has the last entry lags by none")
	require.Zero(t, m["headwater.group.lag"+of])

	k.Observe(t.Context(), es.Unavailable{Topic: topic, Group: "g", Consumer: "c", Cause: errors.New("gone")})
	require.Zero(t, k.metrics(t)["headwater.subscription.healthy"+of])
	k.Observe(t.Context(), es.Healed{Topic: topic, Group: "g", Consumer: "c"})
	require.InDelta(t, 1, k.metrics(t)["headwater.subscription.healthy"+of], 0)
	k.Observe(t.Context(), es.Unsubscribed{Topic: topic, Group: "g", Consumer: "c"})
	require.NotContains(t, k.metrics(t), "headwater.group.pending"+of, "what has ended is not asked for")
	require.NoError(t, k.Close())
}

func TestLabelsAreFew(t *testing.T) {
	t.Parallel()
	rdb, kind := redistest.Shared(t).Client(t), freshType()
	k, bus := newKit(t, rdb), eventbus.New(rdb, wire.JSON(typesOf(kind)))
	bus.Observer, bus.Middleware = k, []es.Middleware{k.Middleware}
	background(t, func(ctx context.Context) error {
		s := es.Subscription{Group: "cache", Aggregates: []es.AggregateType{kind}, Broadcast: true}
		return bus.Subscribe(ctx, s, func(context.Context, es.Commit) error { return nil })
	})
	k.Observe(t.Context(), es.LeaseLost{Topic: "t", Group: recovery.EphemeralPrefix + "a:b:consumer", Consumer: "consumer"})
	eventually(t, "it is subscribed", func() bool {
		return strings.Contains(fmt.Sprint(k.metrics(t)), "headwater.subscription.healthy{group=cache,topic=bank."+kind.Name+":event}")
	})
	all := fmt.Sprint(k.metrics(t))
	require.Contains(t, all, "headwater.leases.lost{group=a:b,topic=t}")
	require.NotContains(t, all, recovery.EphemeralPrefix)
	require.NotContains(t, all, "headwater.group.", "a broadcast's group is one process's own")
}
