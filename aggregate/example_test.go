package aggregate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

type (
	Account struct{ Cents int } // the state

	Deposit  struct{ Cents int } // the commands
	Withdraw struct{ Cents int }

	Deposited struct{ Cents int } // the events
	Withdrawn struct{ Cents int }
)

func (Deposit) CommandName() string  { return "deposit" }
func (Withdraw) CommandName() string { return "withdraw" }
func (Deposited) EventName() string  { return "deposited" }
func (Withdrawn) EventName() string  { return "withdrawn" }

var ErrOverdrawn = errors.New("there is not that much")

var account = aggregate.Decider[Account]{
	Type: es.AggregateType{Context: "bank", Name: "account"},

	Decide: func(a Account, cmd es.Command) (es.Events, error) {
		switch c := cmd.Body.(type) {
		case Deposit:
			return es.Events{Deposited(c)}, nil
		case Withdraw:
			if c.Cents > a.Cents {
				return nil, ErrOverdrawn
			}
			return es.Events{Withdrawn(c)}, nil
		}
		return nil, errors.New("no such command: " + cmd.Name)
	},

	Evolve: func(a Account, event es.Event) Account {
		switch e := event.Body.(type) {
		case Deposited:
			a.Cents += e.Cents
		case Withdrawn:
			a.Cents -= e.Cents
		}
		return a
	},
}

// Two pure functions are an aggregate; a repository carries out its commands.
func Example() {
	ctx, ann := context.Background(), account.Type.ID("ann")
	accounts := &aggregate.Repository[Account]{Decider: account, Store: memory.NewEventStore()}

	_, deposited := accounts.Handle(ctx, es.NewCreateCommand(ann, Deposit{Cents: 100}))
	_, withdrawn := accounts.Handle(ctx, es.NewCommand(ann, Withdraw{Cents: 30}))
	_, refused := accounts.Handle(ctx, es.NewCommand(ann, Withdraw{Cents: 80}))
	fmt.Println(deposited, withdrawn, errors.Is(refused, ErrOverdrawn))

	now, err := accounts.Load(ctx, ann)
	fmt.Println(now.State.Cents, "cents at version", now.Version, err)
	// Output:
	// <nil> <nil> true
	// 70 cents at version 2 <nil>
}
