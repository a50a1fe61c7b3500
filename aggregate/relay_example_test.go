package aggregate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

// A process stored a commit and died before it published it. The note that the append
// left is still there, and a relay, in whatever process, publishes the commit.
func ExampleRelay() {
	ctx, stop := context.WithCancel(context.Background())
	store, events := memory.NewEventStore(), memory.NewEventBus() // on Redis: eventstore.New, eventbus.New
	dead := &aggregate.Repository[Account]{Decider: account, Store: store, Events: crashed{}}
	if _, err := dead.Handle(ctx, es.NewCreateCommand(account.Type.ID("ann"), Deposit{Cents: 100})); err != nil {
		fmt.Println(err)
	}

	accounts := &aggregate.Repository[Account]{Decider: account, Store: store, Events: events}
	relay := &aggregate.Relay{Of: []aggregate.Publishable{accounts}, Every: 10 * time.Millisecond}
	go func() { _ = relay.Run(ctx) }()
	readers := es.Subscription{Group: "statements", Aggregates: []es.AggregateType{account.Type}, Start: es.FromBeginning}
	_ = events.Subscribe(ctx, readers, func(_ context.Context, c es.Commit) error {
		fmt.Println(c.Aggregate.ID, "version", c.Version)
		stop()
		return nil
	})
	// Output: ann version 1
}

// crashed is a bus that is never reached.
type crashed struct{}

func (crashed) Publish(context.Context, ...es.Commit) error { return es.ErrUnavailable }
