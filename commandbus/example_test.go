package commandbus_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// Deposit is a command.
type Deposit struct {
	Cents int64 `json:"cents"`
}

// CommandName implements [es.CommandBody].
func (Deposit) CommandName() string { return "deposit" }

var accounts = es.AggregateType{Context: "bank-service", Name: "account"}

func ExampleNew() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	bus := commandbus.New(rdb, wire.JSON(es.Types{Aggregate: accounts, Commands: []es.Type{{Body: Deposit{}}}}))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	if err := bus.Send(ctx, es.NewCommand(accounts.ID("acc-1"), Deposit{500})); err != nil {
		panic(err)
	}
	bank := es.Subscription{Group: commandbus.Group("bank-service"), Aggregates: []es.AggregateType{accounts}}
	err = bus.Subscribe(ctx, bank, func(_ context.Context, c es.Command) (es.Result, error) {
		fmt.Println(c.Aggregate, c.Body) // in a service: return repository.Handle(ctx, c)
		stop()
		return es.Result{}, nil
	})
	fmt.Println(err)
	// Output:
	// bank-service.account/acc-1@(0) {500}
	// <nil>
}
