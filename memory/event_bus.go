package memory

import (
	"context"
	"log/slog"

	"github.com/headwater-go/headwater/es"
)

// EventBus is an [es.EventPublisher] and [es.EventSubscriber], with the rules of
// [CommandBus].
type EventBus struct {
	// Logger is told of messages that are dropped. Defaults to [slog.Default].
	Logger *slog.Logger

	bus *bus[es.Commit]
}

// NewEventBus is a bus without messages.
func NewEventBus() *EventBus {
	return &EventBus{bus: newBus(":event", "", func(c es.Commit) es.AggregateID { return c.Aggregate }, copyCommit)}
}

// Publish implements [es.EventPublisher]: all of the commits, or none.
func (b *EventBus) Publish(ctx context.Context, commits ...es.Commit) error {
	copies := make([]es.Commit, 0, len(commits))
	for i := range commits {
		c := copyCommit(commits[i])
		err := ctx.Err()
		if err == nil {
			err = c.Validate()
		}
		if err == nil && c.Aggregate != commits[0].Aggregate {
			err = es.Invalid("one call publishes commits of one aggregate, and %s is another", c.Aggregate)
		}
		if err == nil {
			_, err = encode(c)
		}
		if err != nil {
			return &es.Error{Op: "publish events", Aggregate: c.Aggregate, Version: c.Version, RequestID: c.RequestID, Err: err}
		}
		copies = append(copies, c)
	}
	if len(copies) > 0 {
		b.bus.publish(copies[0].Aggregate.Type, copies...)
	}
	return nil
}

// Prepare makes the subscription's group, so that nothing published from then on is
// missed. A new group on a topic that has commits must say where it begins. A broadcast
// has nothing to prepare.
func (b *EventBus) Prepare(_ context.Context, s es.Subscription) error { return b.bus.prepare(s) }

// Subscribe implements [es.EventSubscriber].
func (b *EventBus) Subscribe(ctx context.Context, s es.Subscription, h func(context.Context, es.Commit) error) error {
	return b.bus.subscribe(ctx, b.Logger, s, func(ctx context.Context, c es.Commit) error {
		if s.Skips(ctx, c.Header) {
			return nil
		}
		return h(ctx, c)
	})
}
