// Command quickstart is Headwater in one file: an account declared as two pure
// functions, and one command carried out on it. It needs no server.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

// Deposit is a command: it asks for something.
type Deposit struct{ Cents int }

// Deposited is an event: it says what happened.
type Deposited struct{ Cents int }

// CommandName and EventName are what they are stored under, whatever becomes of the types.
func (Deposit) CommandName() string { return "deposit" }
func (Deposited) EventName() string { return "deposited" }

// Account is what the events of an account add up to.
type Account struct{ Cents int }

var errNothing = errors.New("nothing to deposit")

// decide answers a command with events, or with the reason why not.
func decide(_ Account, c es.Command) (es.Events, error) {
	d, ok := c.Body.(Deposit)
	if !ok || d.Cents <= 0 {
		return nil, errNothing
	}
	return es.Events{Deposited(d)}, nil
}

// evolve is the account after an event.
func evolve(a Account, e es.Event) Account {
	if d, ok := e.Body.(Deposited); ok {
		a.Cents += d.Cents
	}
	return a
}

func main() {
	accountType := es.AggregateType{Context: "bank", Name: "account"}
	accounts := &aggregate.Repository[Account]{
		Decider: aggregate.Decider[Account]{Type: accountType, Decide: decide, Evolve: evolve},
		Store:   memory.NewEventStore(), // on Redis: eventstore.New(rdb, codec)
	}
	ctx, alice := context.Background(), accountType.ID("alice")

	if _, err := accounts.Handle(ctx, es.NewCreateCommand(alice, Deposit{Cents: 4200})); err != nil {
		log.Fatal(err)
	}
	account, err := accounts.Load(ctx, alice)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("alice has %d cents at version %d\n", account.State.Cents, account.Version)
}
