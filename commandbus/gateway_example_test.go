package commandbus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/wire"
)

type deposited struct {
	Cents int64 `json:"cents"`
}

func (deposited) EventName() string { return "deposited" }

var account = aggregate.Decider[int64]{
	Type: accounts,
	Decide: func(_ int64, c es.Command) (es.Events, error) {
		if d := c.Body.(Deposit); d.Cents > 0 {
			return es.Events{deposited(d)}, nil
		}
		return nil, errors.New("not a deposit")
	},
	Evolve: func(balance int64, e es.Event) int64 { return balance + e.Body.(deposited).Cents },
}

func ExampleGateway() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	bus := commandbus.New(rdb, wire.JSON(es.Types{Aggregate: accounts, Commands: []es.Type{{Body: Deposit{}}}}))
	store := memory.NewEventStore()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer func() {
		stop()
		running.Wait()
	}()

	// Whoever carries commands out: this process, or others.
	repository := aggregate.Repository[int64]{Decider: account, Store: store, Notifier: commandbus.NewNotifier(rdb)}
	bank := es.Subscription{Group: commandbus.Group("bank-service"), Aggregates: []es.AggregateType{accounts}}
	running.Go(func() { _ = bus.Subscribe(ctx, bank, repository.Handle) })

	// Whoever waits.
	gateway := commandbus.NewGateway(rdb, bus)
	gateway.Finder = store
	running.Go(func() { _ = gateway.Run(ctx) })

	open := es.NewCreateCommand(accounts.ID("acc-1"), Deposit{500})
	result, err := gateway.SendAndWait(ctx, open, es.Wait{Stage: es.StageProcessed})
	fmt.Println(result.Version, err)
	_, err = gateway.SendAndWait(ctx, es.NewCommand(accounts.ID("acc-1"), Deposit{}), es.Wait{})
	fmt.Println("refused:", errors.Is(err, es.ErrRefused))
	// Output:
	// 1 <nil>
	// refused: true
}
