package service_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/service"
	"github.com/headwater-go/headwater/wire"
)

// Paid is what happened.
type Paid struct{}

// EventName implements [es.EventBody].
func (Paid) EventName() string { return "paid" }

// follower is a part that reads the commits of a type.
func follower(bus *eventbus.Bus, sub es.Subscription, h func(context.Context, es.Commit) error) service.Part {
	return service.Part{
		Name:    "follower",
		Prepare: func(ctx context.Context) error { return bus.Prepare(ctx, sub) },
		Run:     func(ctx context.Context) error { return bus.Subscribe(ctx, sub, h) },
	}
}

func TestGroupsExistBeforeAnythingIsPublished(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := es.AggregateType{Context: "t" + strings.ToLower(rand.Text()), Name: "order"}
		bus := eventbus.New(rdb, wire.JSON(es.Types{Aggregate: typ, Events: []es.Type{{Body: Paid{}}}}))
		sub := es.Subscription{Group: "g", Aggregates: []es.AggregateType{typ}, Start: es.FromNow}
		ctx, stop := context.WithCancel(t.Context())
		got := 0
		publisher := service.Part{Name: "publisher", Run: func(ctx context.Context) error {
			return bus.Publish(ctx, es.Commit{
				ID: "c", Aggregate: typ.ID("1"), CommandID: "c", RequestID: "r", Version: 1, CreateTime: time.Now(),
				Events: []es.Event{es.NewEvent("e", Paid{})},
			})
		}}
		s := silently(publisher, follower(bus, sub, func(context.Context, es.Commit) error {
			got++
			stop()
			return nil
		}))
		require.NoError(t, s.Run(ctx), "it is the publisher that starts first")
		require.Equal(t, 1, got)
		require.Zero(t, rdb.XPending(t.Context(), typ.String()+":event", "g").Val().Count, "handled and acknowledged")
	})
}

func TestAPI07_AServiceOutlivesItsServerAndStopsWithoutIt(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	typ := es.AggregateType{Context: "t" + strings.ToLower(rand.Text()), Name: "order"}
	bus := eventbus.New(rdb, wire.JSON(es.Types{Aggregate: typ}))
	part := follower(bus, es.Subscription{Group: "g", Aggregates: []es.AggregateType{typ}, Grace: time.Second}, func(context.Context, es.Commit) error { return nil })
	part.Health = func(ctx context.Context) error { return rdb.Ping(ctx).Err() }
	s := silently(part)
	s.Grace = 3 * time.Second
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	ready := func() bool { return s.Health(t.Context()).Ready }
	require.Eventually(t, ready, time.Minute, time.Millisecond)
	server.Kill(t)
	require.Eventually(t, func() bool { return !ready() }, time.Minute, time.Millisecond)
	require.True(t, s.Health(t.Context()).Live)
	server.Start(t)
	require.Eventually(t, ready, time.Minute, time.Millisecond, "it recovers by itself")
	server.Kill(t)
	stop()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it waits for a server")
	}
}
