package eventbus_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/recovery"
	"github.com/headwater-go/headwater/wire"
)

// Two functions follow the accounts. The mail server is away for a while, and nothing is
// booked twice for it.
func ExampleBus_Compensate() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	bus := eventbus.New(rdb, wire.JSON(es.Types{Aggregate: accounts, Events: []es.Type{{Body: Deposited{}}}}))
	store, ctx := memory.NewEventStore(), context.Background()
	deposit := es.Commit{
		ID: "commit-1", Aggregate: accounts.ID("acc-1"), CommandID: "command-1", RequestID: "request-1", Version: 1,
		Events: []es.Event{es.NewEvent("event-1", Deposited{500})},
	}
	if _, err := store.Append(ctx, es.AppendOptions{}, deposit); err != nil {
		panic(err)
	}
	if err := bus.Publish(ctx, deposit); err != nil {
		panic(err)
	}

	// run runs the two until a mail was sent, or was not.
	run := func(mail func(es.Commit) error) {
		ctx, stop := context.WithCancel(ctx)
		function := func(name string) es.Function {
			return es.Function{Context: "bank-service", Processor: "Reactions", Name: name}
		}
		err := es.Functions{
			{Function: function("books"), Handle: func(_ context.Context, c es.Commit) error {
				fmt.Println("booked", c.ID)
				return nil
			}},
			{Function: function("mail"), Handle: func(_ context.Context, c es.Commit) error {
				defer stop()
				return mail(c)
			}},
		}.Subscribe(ctx, bus, es.Subscription{Group: "bank-service.Reactions", Aggregates: []es.AggregateType{accounts}, Start: es.FromBeginning})
		if err != nil {
			panic(err)
		}
	}
	run(func(es.Commit) error { return es.Permanent(errors.New("no mail server")) })
	for l, err := range recovery.NewDeadLetters(rdb).List(ctx, recovery.LetterFilter{Function: "mail"}, recovery.Letter{}) {
		fmt.Printf("%s %s: %s %v\n", l.Function, l.Reason, l.Error, err)
		if _, err := bus.Compensate(ctx, store, l); err != nil {
			panic(err)
		}
	}
	run(func(c es.Commit) error {
		fmt.Println("mailed", c.ID, "for", c.Header.Get(es.HeaderCompensateFunction))
		return nil
	})
	// Output:
	// booked commit-1
	// bank-service.Reactions.mail permanent: no mail server <nil>
	// mailed commit-1 for mail
}
