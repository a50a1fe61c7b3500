package estest

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/headwater-go/headwater/es"
)

// preparer makes the groups of a subscription, so that nothing sent from then on is missed.
type preparer interface {
	Prepare(ctx context.Context, s es.Subscription) error
}

// CommandBus is what [TestCommandBus] tests.
type CommandBus interface {
	es.CommandSender
	es.CommandSubscriber
	preparer
}

// EventBus is what [TestEventBus] tests.
type EventBus interface {
	es.EventPublisher
	es.EventSubscriber
	preparer
}

// StateBus is what [TestStateBus] tests.
type StateBus interface {
	es.StatePublisher
	es.StateSubscriber
	preparer
}

// TestCommandBus tests what [es.CommandSender] and [es.CommandSubscriber] promise. Each
// test calls newBus with the tables of aggregate types that no other test has, so the
// buses may share a database.
func TestCommandBus[B CommandBus](t *testing.T, newBus func(t *testing.T, types ...es.Types) B) {
	open := func(t *testing.T, types ...es.Types) CommandBus { return newBus(t, types...) }
	runChecks(t, open, append(busChecks(commandBus), commandChecks...))
}

// TestEventBus tests what [es.EventPublisher] and [es.EventSubscriber] promise, as
// [TestCommandBus] does.
func TestEventBus[B EventBus](t *testing.T, newBus func(t *testing.T, types ...es.Types) B) {
	open := func(t *testing.T, types ...es.Types) EventBus { return newBus(t, types...) }
	runChecks(t, open, append(busChecks(eventBus), eventChecks...))
}

// TestStateBus tests what [es.StatePublisher] and [es.StateSubscriber] promise, as
// [TestCommandBus] does. The states are a [State].
func TestStateBus[B StateBus](t *testing.T, newBus func(t *testing.T, types ...es.Types) B) {
	open := func(t *testing.T, types ...es.Types) StateBus { return newBus(t, types...) }
	runChecks(t, open, append(busChecks(stateBus), stateChecks...))
}

// letter is what the tests that all buses share know of a message.
type letter struct {
	id        string
	aggregate es.AggregateID
	number    int
}

// bus is any of the three buses.
type bus struct {
	// kind ends the names of its topics.
	kind string
	// mustStart: a new group on a topic with messages must say where it begins.
	mustStart bool
	send      func(ctx context.Context, l letter) error
	prepare   func(ctx context.Context, s es.Subscription) error
	subscribe func(ctx context.Context, s es.Subscription, handle func(context.Context, letter) error) error
}

// busKit is what each test that all buses share gets.
type busKit struct {
	bus
	typ  es.AggregateType
	open func(types ...es.AggregateType) bus
}

// busChecks are the tests that all buses share, for one that as makes a bus.
func busChecks[B any](as func(B) bus) []check[B] {
	var checks []check[B]
	for _, c := range slices.Concat(deliveryChecks, valveChecks, failureChecks, endChecks, startChecks, refusalChecks) {
		checks = append(checks, check[B]{c.name, func(t *testing.T, k kit[B]) {
			c.run(t, busKit{bus: as(k.store), typ: k.typ, open: func(types ...es.AggregateType) bus { return as(k.open(types...)) }})
		}})
	}
	return checks
}

type busCheck struct {
	name string
	run  func(t *testing.T, k busKit)
}

// newSubscription is a subscription of a group of its own, which takes all there is, and
// whose knobs make tests quick.
func newSubscription(types ...es.AggregateType) es.Subscription {
	return es.Subscription{
		Group: "g-" + rand.Text(), Aggregates: types, Start: es.FromBeginning,
		Workers: 8, Backoff: 10 * time.Millisecond, MaxBackoff: 40 * time.Millisecond, Sweep: 50 * time.Millisecond,
	}
}

func (k busKit) subscription() es.Subscription { return newSubscription(k.typ) }

// letters are n messages to one aggregate, numbered from 1.
func (k busKit) letters(id string, n int) []letter {
	all := make([]letter, n)
	for i := range all {
		all[i] = letter{rand.Text(), k.typ.ID(id), i + 1}
	}
	return all
}

func commandBus(b CommandBus) bus {
	return bus{
		kind: ":command", prepare: b.Prepare,
		send: func(ctx context.Context, l letter) error {
			c := es.NewCommand(l.aggregate, Change{Number: int64(l.number)})
			c.ID = l.id
			return b.Send(ctx, c)
		},
		subscribe: func(ctx context.Context, s es.Subscription, handle func(context.Context, letter) error) error {
			return b.Subscribe(ctx, s, func(ctx context.Context, c es.Command) (es.Result, error) {
				body, _ := c.Body.(Change)
				return es.Result{}, handle(ctx, letter{c.ID, c.Aggregate, int(body.Number)})
			})
		},
	}
}

func eventBus(b EventBus) bus {
	return bus{
		kind: ":event", prepare: b.Prepare, mustStart: true,
		send: func(ctx context.Context, l letter) error {
			c := commitOf(l.aggregate, l.number)
			c.ID = l.id
			return b.Publish(ctx, c)
		},
		subscribe: func(ctx context.Context, s es.Subscription, handle func(context.Context, letter) error) error {
			return b.Subscribe(ctx, s, func(ctx context.Context, c es.Commit) error {
				return handle(ctx, letter{c.ID, c.Aggregate, c.Version})
			})
		},
	}
}

func stateBus(b StateBus) bus {
	return bus{
		kind: ":state", prepare: b.Prepare,
		send: func(ctx context.Context, l letter) error {
			e := stateEventOf(l.aggregate, l.number)
			e.ID = l.id
			return b.Publish(ctx, e)
		},
		subscribe: func(ctx context.Context, s es.Subscription, handle func(context.Context, letter) error) error {
			return b.Subscribe(ctx, s, func(ctx context.Context, e es.StateEvent) error {
				return handle(ctx, letter{e.ID, e.Aggregate, e.Version})
			})
		},
	}
}

func stateEventOf(id es.AggregateID, version int) es.StateEvent {
	c := commitOf(id, version)
	return es.StateEvent{
		Commit: c, FirstOperator: "ada", FirstEventTime: c.CreateTime.Add(-time.Hour), Tags: es.Tags{"team": {"x", "y"}},
		State: State{Data: "after", Number: int64(version), Items: []string{"a"}, Labels: map[string]string{"k": "v"}},
	}
}
