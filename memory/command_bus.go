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
// handled once in each group, those of one aggregate in the order they were sent; a
// group begins with the first command there is, whenever it was sent. A Subscribe
// handles one command at a time: subscribe several times for more.
//
// A handler that fails, but not with an [es.ErrRefused], is called again up to four
// times; then, or at once on [es.Permanent], the command is dropped with a line in the
// log. The bus keeps every message for as long as it lives.
type CommandBus struct {
	// Logger is told of messages that are dropped. Defaults to [slog.Default].
	Logger *slog.Logger

	bus *bus[es.Command]
}

// NewCommandBus is a bus without messages.
func NewCommandBus() *CommandBus {
	return &CommandBus{bus: newBus(func(c es.Command) es.AggregateID { return c.Aggregate }, copyCommand)}
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

// Subscribe implements [es.CommandSubscriber]. A refusal is an answer: it is not retried.
func (b *CommandBus) Subscribe(ctx context.Context, s es.Subscription, h es.CommandHandler) error {
	return b.bus.subscribe(ctx, b.Logger, s, func(ctx context.Context, c es.Command) error {
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
