package aggregate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

// Both functions are pure, so a rule is tried without a store. Given, When, Then of
// package estest make a test of it.
func ExampleDecider() {
	a := account.Evolve(Account{}, es.Event{Body: Deposited{Cents: 100}})
	for _, cents := range []int{30, 300} {
		events, err := account.Decide(a, es.Command{Body: Withdraw{Cents: cents}})
		fmt.Println(events, err)
	}
	// Output:
	// [{30}] <nil>
	// [] there is not that much
}

// A command may come any number of times and is carried out once. A refusal is the
// aggregate's answer; every other error is a fault.
func ExampleRepository_Handle() {
	ctx, ann := context.Background(), account.Type.ID("ann")
	accounts := &aggregate.Repository[Account]{Decider: account, Store: memory.NewEventStore()}

	c := es.NewCreateCommand(ann, Deposit{Cents: 100})
	c.RequestID = "payment-4711"
	for range 2 {
		result, err := accounts.Handle(ctx, c)
		fmt.Println("version", result.Version, "again:", result.Duplicate, err)
	}
	_, err := accounts.Handle(ctx, es.NewCommand(ann, Withdraw{Cents: 300}))
	fmt.Println("refused:", errors.Is(err, es.ErrRefused))
	// Output:
	// version 1 again: false <nil>
	// version 1 again: true <nil>
	// refused: true
}

// With snapshots loading takes no longer as an aggregate grows. The past stays.
func ExampleRepository() {
	ctx, ann := context.Background(), account.Type.ID("ann")
	accounts := &aggregate.Repository[Account]{
		Decider:   account,
		Store:     memory.NewEventStore(),             // on Redis: eventstore.New(rdb, codec)
		Snapshots: memory.NewSnapshotStore[Account](), // on Redis: snapshot.New[Account](rdb, codec)
	}
	for range 60 {
		c := es.NewCommand(ann, Deposit{Cents: 100})
		c.AllowCreate = true
		if _, err := accounts.Handle(ctx, c); err != nil {
			fmt.Println(err)
		}
	}
	now, _ := accounts.Load(ctx, ann)
	then, _ := accounts.LoadVersion(ctx, ann, 7)
	saved, _ := accounts.Snapshots.Version(ctx, ann)
	fmt.Println(now.State.Cents, "now,", then.State.Cents, "at version 7, a snapshot at", saved)
	// Output: 6000 now, 700 at version 7, a snapshot at 50
}
