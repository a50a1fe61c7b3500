package eventbus_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/wire"
)

// Deposited is what happened to an account.
type Deposited struct {
	Cents int64 `json:"cents"`
}

// EventName implements [es.EventBody].
func (Deposited) EventName() string { return "deposited" }

var accounts = es.AggregateType{Context: "bank-service", Name: "account"}

func ExampleNew() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	bus := eventbus.New(rdb, wire.JSON(es.Types{Aggregate: accounts, Events: []es.Type{{Body: Deposited{}}}}))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	balances := es.Subscription{Group: eventbus.Group("bank-service", "Balances"), Aggregates: []es.AggregateType{accounts}}
	if err := bus.Prepare(ctx, balances); err != nil { // what is published from now on is not missed
		panic(err)
	}
	deposit := es.Commit{
		ID: "commit-1", Aggregate: accounts.ID("acc-1"), CommandID: "command-1", RequestID: "request-1", Version: 1,
		Events: []es.Event{es.NewEvent("event-1", Deposited{500})}, CreateTime: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
	}
	if err := bus.Publish(ctx, deposit); err != nil {
		panic(err)
	}
	err = bus.Subscribe(ctx, balances, func(_ context.Context, c es.Commit) error {
		fmt.Println(c.Aggregate, c.Version, c.Events[0].Body)
		stop()
		return nil
	})
	fmt.Println(err)
	// Output:
	// bank-service.account/acc-1@(0) 1 {500}
	// <nil>
}
