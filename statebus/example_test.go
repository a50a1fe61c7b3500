package statebus_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/statebus"
	"github.com/headwater-go/headwater/wire"
)

// Deposited is what happened to an account.
type Deposited struct {
	Cents int64 `json:"cents"`
}

// EventName implements [es.EventBody].
func (Deposited) EventName() string { return "deposited" }

// Account is the state of an account.
type Account struct {
	Balance int64 `json:"balance"`
}

var accounts = es.AggregateType{Context: "bank-service", Name: "account"}

func ExampleNew() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	bus := statebus.New[Account](rdb, wire.JSON(es.Types{Aggregate: accounts, Events: []es.Type{{Body: Deposited{}}}}))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	deposit := es.Commit{
		ID: "commit-1", Aggregate: accounts.ID("acc-1"), CommandID: "command-1", RequestID: "request-1", Version: 1,
		Events: []es.Event{es.NewEvent("event-1", Deposited{500})}, CreateTime: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
	}
	if err := bus.Publish(ctx, es.StateEvent{Commit: deposit, State: Account{500}}); err != nil {
		panic(err)
	}
	search := es.Subscription{Group: statebus.Group("bank-service", "Search"), Aggregates: []es.AggregateType{accounts}}
	err = bus.Subscribe(ctx, search, func(_ context.Context, e es.StateEvent) error {
		fmt.Println(e.Version, e.State.(Account).Balance)
		stop()
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 500
	// <nil>
}
