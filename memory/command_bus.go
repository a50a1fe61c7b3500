package memory

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/headwater-go/headwater/es"
)

// CommandBus is an [es.CommandSender] and [es.CommandSubscriber]. Each command is
// handled once in each group, those of one aggregate in the order they were sent. Of the
// knobs of an [es.Subscription], Workers defaults to 1 and Backoff to 10 ms here; what is
// about consumers that die means nothing.
//
// A handler that fails, but not with an [es.ErrRefused], is called again until
// MaxDeliveries; then, or at once on [es.Permanent], the command is dropped with a line
// in the log. The bus keeps every message for as long as it lives.
type CommandBus struct {
	// Logger is told of messages that are dropped. Defaults to [slog.Default].
	Logger *slog.Logger

	bus *bus[es.Command]
}

// NewCommandBus is a bus without messages.
func NewCommandBus() *CommandBus {
	return &CommandBus{bus: newBus(":command", es.FromBeginning, func(c es.Command) es.AggregateID { return c.Aggregate }, copyCommand)}
}

// Send implements [es.CommandSender]. It fills what is unset of the command.
func (b *CommandBus) Send(ctx context.Context, c es.Command) error {
	c = copyCommand(c)
	c.Complete(rand.Text, time.Now())
	c.CreateTime = stamp(c.CreateTime)
	err := ctx.Err()
	if err == nil {
		err = c.Validate()
	}
	if err == nil {
		_, err = encode(c)
	}
	if err != nil {
		return &es.Error{Op: "send command", Aggregate: c.Aggregate, RequestID: c.RequestID, Err: err}
	}
	b.bus.publish(c.Aggregate.Type, c)
	return nil
}

// Prepare makes the subscription's group, so that nothing sent from then on is missed.
// A new group begins at the beginning, unless Start says otherwise. A broadcast has
// nothing to prepare.
func (b *CommandBus) Prepare(_ context.Context, s es.Subscription) error { return b.bus.prepare(s) }

// Subscribe implements [es.CommandSubscriber]. A refusal is an answer: it is not retried.
// Void commands are passed over.
func (b *CommandBus) Subscribe(ctx context.Context, s es.Subscription, h es.CommandHandler) error {
	return b.bus.subscribe(ctx, b.Logger, s, func(ctx context.Context, c es.Command) error {
		if c.Void {
			return nil
		}
		if _, err := h(ctx, c); err != nil && !errors.Is(err, es.ErrRefused) {
			return err
		}
		return nil
	})
}

// copyCommand shares nothing with c but the body.
func copyCommand(c es.Command) es.Command {
	c.Header = slices.Clone(c.Header)
	if c.Expected != nil {
		expected := *c.Expected
		c.Expected = &expected
	}
	return c
}
