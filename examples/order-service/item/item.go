// Package item is the way of one ordered item through the warehouse: placed, perhaps
// out of stock and reordered, picked, packed.
package item

import (
	"errors"
	"fmt"
	"time"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
)

// Type is the item's place in the service.
var Type = es.AggregateType{Context: "order-service", Name: "item"}

// Decider is the item's two pure functions.
var Decider = aggregate.Decider[State]{Type: Type, Decide: decide, Evolve: evolve}

// Types is everything that is stored or sent about an item.
var Types = es.Types{
	Aggregate: Type,
	Commands:  []es.Type{{Body: Place{}}, {Body: RunOut{}}, {Body: Reorder{}}, {Body: Pick{}}, {Body: Pack{}}},
	Events:    []es.Type{{Body: Placed{}}, {Body: RanOut{}}, {Body: Reordered{}}, {Body: Picked{}}, {Body: Packed{}}},
}

// What an item says no to.
var (
	ErrNotPlaced     = errors.New("item is not ordered")
	ErrPlaced        = errors.New("item is ordered already")
	ErrNoOrder       = errors.New("item names no order")
	ErrOutOfStock    = errors.New("item is out of stock")
	ErrInStock       = errors.New("item is in stock")
	ErrNotPicked     = errors.New("item is not picked")
	ErrPicked        = errors.New("item is picked already")
	ErrPacked        = errors.New("item is packed already")
	ErrNoPackage     = errors.New("item names no package")
	errNoSuchCommand = errors.New("item knows no such command")
)

// The events. At is when it happened in the shop.
type (
	// Placed says which order the item is part of.
	Placed struct {
		Order string    `json:"order"`
		At    time.Time `json:"at"`
	}
	// RanOut says that the shelf was empty.
	RanOut struct {
		At time.Time `json:"at"`
	}
	// Reordered says that the supplier filled the shelf again.
	Reordered struct {
		At time.Time `json:"at"`
	}
	// Picked says that somebody took the item off the shelf.
	Picked struct {
		At time.Time `json:"at"`
	}
	// Packed says which package holds the item.
	Packed struct {
		Package string    `json:"package"`
		At      time.Time `json:"at"`
	}
)

// EventName implements [es.EventBody].
func (Placed) EventName() string { return "item_placed" }

// EventName implements [es.EventBody].
func (RanOut) EventName() string { return "item_ran_out" }

// EventName implements [es.EventBody].
func (Reordered) EventName() string { return "item_reordered" }

// EventName implements [es.EventBody].
func (Picked) EventName() string { return "item_picked" }

// EventName implements [es.EventBody].
func (Packed) EventName() string { return "item_packed" }

// Status is where an item is; "" = it was never ordered.
type Status string

// The statuses. An item may go back and forth between the first two.
const (
	StatusPlaced     Status = "placed"
	StatusOutOfStock Status = "out_of_stock"
	StatusPicked     Status = "picked"
	StatusPacked     Status = "packed"
)

// State is an item as its events left it.
type State struct {
	Status  Status `json:"status"`
	Order   string `json:"order"`
	Package string `json:"package"`
}

func evolve(s State, e es.Event) State {
	switch e := e.Body.(type) {
	case Placed:
		return State{Status: StatusPlaced, Order: e.Order}
	case RanOut:
		s.Status = StatusOutOfStock
	case Reordered:
		s.Status = StatusPlaced
	case Picked:
		s.Status = StatusPicked
	case Packed:
		s.Status, s.Package = StatusPacked, e.Package
	}
	return s
}

// The commands.
type (
	// Place makes the item part of an order.
	Place struct {
		Order string `json:"order"`
	}
	// RunOut reports that the shelf is empty.
	RunOut struct{}
	// Reorder fills the shelf again.
	Reorder struct{}
	// Pick takes the item off the shelf.
	Pick struct{}
	// Pack puts a picked item into its one package.
	Pack struct {
		Package string `json:"package"`
	}
)

// CommandName implements [es.CommandBody].
func (Place) CommandName() string { return "place_item" }

// CommandName implements [es.CommandBody].
func (RunOut) CommandName() string { return "run_out_of_stock" }

// CommandName implements [es.CommandBody].
func (Reorder) CommandName() string { return "reorder_item" }

// CommandName implements [es.CommandBody].
func (Pick) CommandName() string { return "pick_item" }

// CommandName implements [es.CommandBody].
func (Pack) CommandName() string { return "pack_item" }

func decide(s State, c es.Command) (es.Events, error) {
	at := c.CreateTime
	switch body := c.Body.(type) {
	case Place:
		return one(Placed{Order: body.Order, At: at}, s.mayPlace(body))
	case RunOut:
		return one(RanOut{At: at}, s.onShelf())
	case Reorder:
		return one(Reordered{At: at}, s.mayReorder())
	case Pick:
		return one(Picked{At: at}, s.onShelf())
	case Pack:
		return one(Packed{Package: body.Package, At: at}, s.mayPack(body))
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
	case p.Order == "":
		return ErrNoOrder
	}
	return nil
}

// onShelf is what both a pick and an empty shelf ask first: nobody has the item yet.
func (s State) onShelf() error {
	switch s.Status {
	case "":
		return ErrNotPlaced
	case StatusOutOfStock:
		return ErrOutOfStock
	case StatusPicked:
		return ErrPicked
	case StatusPacked:
		return ErrPacked
	}
	return nil
}

func (s State) mayReorder() error {
	switch err := s.onShelf(); {
	case err == nil:
		return ErrInStock
	case !errors.Is(err, ErrOutOfStock):
		return err
	}
	return nil
}

func (s State) mayPack(p Pack) error {
	switch {
	case s.Status == "":
		return ErrNotPlaced
	case s.Status == StatusPacked:
		return ErrPacked
	case s.Status != StatusPicked:
		return ErrNotPicked
	case p.Package == "":
		return ErrNoPackage
	}
	return nil
}
