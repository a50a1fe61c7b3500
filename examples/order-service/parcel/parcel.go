// Package parcel is the way of one package to the customer: created, sent, perhaps
// not taken in, delivered. On the wire it is a "package"; Go keeps that word for itself.
package parcel

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
)

// Type is the package's place in the service.
var Type = es.AggregateType{Context: "order-service", Name: "package"}

// Decider is the package's two pure functions.
var Decider = aggregate.Decider[State]{Type: Type, Decide: decide, Evolve: evolve}

// Types is everything that is stored or sent about a package.
var Types = es.Types{
	Aggregate: Type,
	Commands:  []es.Type{{Body: Create{}}, {Body: Send{}}, {Body: Fail{}}, {Body: Deliver{}}},
	Events:    []es.Type{{Body: Created{}}, {Body: Sent{}}, {Body: Failed{}}, {Body: Delivered{}}},
}

// What a package says no to.
var (
	ErrNotCreated    = errors.New("package is not created")
	ErrCreated       = errors.New("package is created already")
	ErrNoItems       = errors.New("package has no items")
	ErrItemTwice     = errors.New("package names an item twice")
	ErrNotSent       = errors.New("package is not sent")
	ErrSent          = errors.New("package is sent already")
	ErrDelivered     = errors.New("package is delivered already")
	errNoSuchCommand = errors.New("package knows no such command")
)

// The events. At is when it happened in the shop.
type (
	// Created says what is in the package.
	Created struct {
		Items []string  `json:"items"`
		Grams int       `json:"grams"`
		At    time.Time `json:"at"`
	}
	// Sent says that the carrier has the package.
	Sent struct {
		At time.Time `json:"at"`
	}
	// Failed says that nobody took the package in; the carrier tries again.
	Failed struct {
		At time.Time `json:"at"`
	}
	// Delivered says that the customer has the package.
	Delivered struct {
		At time.Time `json:"at"`
	}
)

// EventName implements [es.EventBody].
func (Created) EventName() string { return "package_created" }

// EventName implements [es.EventBody].
func (Sent) EventName() string { return "package_sent" }

// EventName implements [es.EventBody].
func (Failed) EventName() string { return "delivery_failed" }

// EventName implements [es.EventBody].
func (Delivered) EventName() string { return "package_delivered" }

// Status is where a package is; "" = it was never created.
type Status string

// The statuses, in their order.
const (
	StatusCreated   Status = "created"
	StatusSent      Status = "sent"
	StatusDelivered Status = "delivered"
)

// State is a package as its events left it.
type State struct {
	Status   Status   `json:"status"`
	Items    []string `json:"items"`
	Grams    int      `json:"grams"`
	Failures int      `json:"failures"`
}

func evolve(s State, e es.Event) State {
	switch e := e.Body.(type) {
	case Created:
		return State{Status: StatusCreated, Items: e.Items, Grams: e.Grams}
	case Sent:
		s.Status = StatusSent
	case Failed:
		s.Failures++
	case Delivered:
		s.Status = StatusDelivered
	}
	return s
}

// The commands.
type (
	// Create closes a package over its items.
	Create struct {
		Items []string `json:"items"`
		Grams int      `json:"grams"`
	}
	// Send hands the package to the carrier.
	Send struct{}
	// Fail reports a delivery that failed, as often as it does.
	Fail struct{}
	// Deliver reports the delivery.
	Deliver struct{}
)

// CommandName implements [es.CommandBody].
func (Create) CommandName() string { return "create_package" }

// CommandName implements [es.CommandBody].
func (Send) CommandName() string { return "send_package" }

// CommandName implements [es.CommandBody].
func (Fail) CommandName() string { return "fail_delivery" }

// CommandName implements [es.CommandBody].
func (Deliver) CommandName() string { return "deliver_package" }

func decide(s State, c es.Command) (es.Events, error) {
	at := c.CreateTime
	switch body := c.Body.(type) {
	case Create:
		return one(Created{Items: body.Items, Grams: body.Grams, At: at}, s.mayCreate(body))
	case Send:
		return one(Sent{At: at}, s.maySend())
	case Fail:
		return one(Failed{At: at}, s.onItsWay())
	case Deliver:
		return one(Delivered{At: at}, s.onItsWay())
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

func (s State) mayCreate(c Create) error {
	switch {
	case s.Status != "":
		return ErrCreated
	case len(c.Items) == 0:
		return ErrNoItems
	case len(c.Items) != len(slices.Compact(slices.Sorted(slices.Values(c.Items)))):
		return ErrItemTwice
	}
	return nil
}

func (s State) maySend() error {
	switch s.Status {
	case "":
		return ErrNotCreated
	case StatusCreated:
		return nil
	case StatusSent:
		return ErrSent
	}
	return ErrDelivered
}

func (s State) onItsWay() error {
	switch s.Status {
	case "":
		return ErrNotCreated
	case StatusCreated:
		return ErrNotSent
	case StatusDelivered:
		return ErrDelivered
	}
	return nil
}
