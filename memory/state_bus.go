package memory

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/headwater-go/headwater/es"
)

// StateBus is an [es.StatePublisher] and [es.StateSubscriber], with the rules of
// [CommandBus]. Readers get the very state that was published, not a [es.Raw].
type StateBus struct {
	// Logger is told of messages that are dropped. Defaults to [slog.Default].
	Logger *slog.Logger

	bus *bus[es.StateEvent]
}

// NewStateBus is a bus without messages.
func NewStateBus() *StateBus {
	return &StateBus{bus: newBus(":state", es.FromBeginning, func(e es.StateEvent) es.AggregateID { return e.Aggregate }, copyStateEvent)}
}

// Publish implements [es.StatePublisher].
func (b *StateBus) Publish(ctx context.Context, e es.StateEvent) error {
	e = copyStateEvent(e)
	err := ctx.Err()
	if err == nil {
		err = e.Validate()
	}
	if err == nil {
		_, err = encode(e)
	}
	if err != nil {
		return &es.Error{Op: "publish state", Aggregate: e.Aggregate, Version: e.Version, RequestID: e.RequestID, Err: err}
	}
	b.bus.publish(e.Aggregate.Type, e)
	return nil
}

// Prepare makes the subscription's group, so that nothing published from then on is
// missed. A new group begins at the beginning, unless Start says otherwise. A broadcast
// has nothing to prepare.
func (b *StateBus) Prepare(_ context.Context, s es.Subscription) error { return b.bus.prepare(s) }

// Subscribe implements [es.StateSubscriber].
func (b *StateBus) Subscribe(ctx context.Context, s es.Subscription, h func(context.Context, es.StateEvent) error) error {
	return b.bus.subscribe(ctx, b.Logger, s, func(ctx context.Context, e es.StateEvent) error {
		if s.Skips(ctx, e.Header) {
			return nil
		}
		return h(ctx, e)
	})
}

// copyStateEvent shares nothing with e but the bodies and the state.
func copyStateEvent(e es.StateEvent) es.StateEvent {
	e.Commit = copyCommit(e.Commit)
	e.FirstEventTime = stamp(e.FirstEventTime)
	e.Tags = maps.Clone(e.Tags)
	for k, values := range e.Tags {
		e.Tags[k] = slices.Clone(values)
	}
	return e
}
