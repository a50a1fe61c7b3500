// Package order is the life of a customer's order: placed, confirmed, perhaps
// reminded of its payment, paid.
package order

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
)

// Type is the order's place in the service.
var Type = es.AggregateType{Context: "order-service", Name: "order"}

// Decider is the order's two pure functions.
var Decider = aggregate.Decider[State]{Type: Type, Decide: decide, Evolve: evolve}

// Types is everything that is stored or sent about an order.
var Types = es.Types{
	Aggregate: Type,
	Commands:  []es.Type{{Body: Place{}}, {Body: Confirm{}}, {Body: Remind{}}, {Body: Pay{}}},
	Events:    []es.Type{{Body: Placed{}}, {Body: Confirmed{}}, {Body: Reminded{}}, {Body: Paid{}}},
}

// What an order says no to.
var (
	ErrNotPlaced     = errors.New("order is not placed")
	ErrPlaced        = errors.New("order is placed already")
	ErrNoItems       = errors.New("order has no items")
	ErrItemTwice     = errors.New("order names an item twice")
	ErrNoPrice       = errors.New("order has no price")
	ErrConfirmed     = errors.New("order is confirmed already")
	ErrNotConfirmed  = errors.New("order is not confirmed")
	ErrPaid          = errors.New("order is paid already")
	ErrWrongAmount   = errors.New("payment is not the order's price")
	errNoSuchCommand = errors.New("order knows no such command")
)

// The events. At is when it happened in the shop, which for a replayed log is long
// before the commit's own time.
type (
	// Placed says what was ordered, and what it costs together.
	Placed struct {
		Items []string  `json:"items"`
		Price Money     `json:"price"`
		At    time.Time `json:"at"`
	}
	// Confirmed says that the shop will deliver.
	Confirmed struct {
		At time.Time `json:"at"`
	}
	// Reminded says that the customer was asked again to pay.
	Reminded struct {
		At time.Time `json:"at"`
	}
	// Paid says that the whole price came in.
	Paid struct {
		Amount Money     `json:"amount"`
		At     time.Time `json:"at"`
	}
)

// EventName implements [es.EventBody].
func (Placed) EventName() string { return "order_placed" }

// EventName implements [es.EventBody].
func (Confirmed) EventName() string { return "order_confirmed" }

// EventName implements [es.EventBody].
func (Reminded) EventName() string { return "payment_reminded" }

// EventName implements [es.EventBody].
func (Paid) EventName() string { return "order_paid" }

// Status is how far an order has come; "" = it was never placed.
type Status string

// The statuses, in their order.
const (
	StatusPlaced    Status = "placed"
	StatusConfirmed Status = "confirmed"
	StatusPaid      Status = "paid"
)

// State is an order as its events left it.
type State struct {
	Status    Status    `json:"status"`
	Items     []string  `json:"items"`
	Price     Money     `json:"price"`
	Reminders int       `json:"reminders"`
	PlacedAt  time.Time `json:"placedAt"`
}

func evolve(s State, e es.Event) State {
	switch e := e.Body.(type) {
	case Placed:
		return State{Status: StatusPlaced, Items: e.Items, Price: e.Price, PlacedAt: e.At}
	case Confirmed:
		s.Status = StatusConfirmed
	case Reminded:
		s.Reminders++
	case Paid:
		s.Status = StatusPaid
	}
	return s
}

// The commands.
type (
	// Place orders the items for a price.
	Place struct {
		Items []string `json:"items"`
		Price Money    `json:"price"`
	}
	// Confirm accepts a placed order.
	Confirm struct{}
	// Remind asks the customer again to pay, as often as it takes.
	Remind struct{}
	// Pay pays a confirmed order, all at once.
	Pay struct {
		Amount Money `json:"amount"`
	}
)

// CommandName implements [es.CommandBody].
func (Place) CommandName() string { return "place_order" }

// CommandName implements [es.CommandBody].
func (Confirm) CommandName() string { return "confirm_order" }

// CommandName implements [es.CommandBody].
func (Remind) CommandName() string { return "remind_payment" }

// CommandName implements [es.CommandBody].
func (Pay) CommandName() string { return "pay_order" }

func decide(s State, c es.Command) (es.Events, error) {
	at := c.CreateTime
	switch body := c.Body.(type) {
	case Place:
		return one(Placed{Items: body.Items, Price: body.Price, At: at}, s.mayPlace(body))
	case Confirm:
		return one(Confirmed{At: at}, s.mayConfirm())
	case Remind:
		return one(Reminded{At: at}, s.mayPay())
	case Pay:
		if err := s.mayPay(); err != nil {
			return nil, err
		}
		if body.Amount != s.Price {
			return nil, ErrWrongAmount
		}
		return es.Events{Paid{Amount: body.Amount, At: at}}, nil
	}
	return nil, fmt.Errorf("%w: %s", errNoSuchCommand, c.Name)
}

// one is a decision for the event, unless there is a reason against it.
func one(event es.EventBody, reason error) (es.Events, error) {
	if reason != nil {
		return nil, reason
	}
	return es.Events{event}, nil
}

func (s State) mayPlace(p Place) error {
	switch {
	case s.Status != "":
		return ErrPlaced
	case len(p.Items) == 0:
		return ErrNoItems
	case len(p.Items) != len(slices.Compact(slices.Sorted(slices.Values(p.Items)))):
		return ErrItemTwice
	case p.Price <= 0:
		return ErrNoPrice
	}
	return nil
}

func (s State) mayConfirm() error {
	switch s.Status {
	case "":
		return ErrNotPlaced
	case StatusPlaced:
		return nil
	}
	return ErrConfirmed
}

// mayPay also answers for a reminder: it asks for what Pay would do.
func (s State) mayPay() error {
	switch s.Status {
	case "":
		return ErrNotPlaced
	case StatusPlaced:
		return ErrNotConfirmed
	case StatusPaid:
		return ErrPaid
	}
	return nil
}
