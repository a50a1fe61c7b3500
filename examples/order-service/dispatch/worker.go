package dispatch

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
)

// MaxDeliveries is how often a worker's subscription tries a command that fails for
// reasons of its own, before it becomes a dead letter.
const MaxDeliveries = 5

// Worker carries out commands that come over the bus. All fields must be set.
type Worker struct {
	// CarryOut has the command's aggregate decide.
	CarryOut es.CommandHandler
	Store    es.Finder
	Events   es.EventPublisher
	// Answers is where the desks read.
	Answers redis.Cmdable

	done atomic.Int64
}

// Done counts the commands that this worker has answered.
func (w *Worker) Done() int64 { return w.done.Load() }

// Handle is an [es.CommandHandler]. The bus acknowledges a command when it returns, so
// a worker that dies before has it delivered to another one: which finds the commit of
// this very command, publishes it (again, if need be) and answers as if it were the first.
func (w *Worker) Handle(ctx context.Context, c es.Command) (es.Result, error) {
	result, err := w.carryOut(ctx, c)
	if desk, ok := c.Header.Lookup(headerReplyTo); ok && final(ctx, err) {
		if err := answerTo(&c, result, err).send(ctx, w.Answers, desk); err != nil {
			return result, err
		}
		w.done.Add(1)
	}
	return result, err
}

func (w *Worker) carryOut(ctx context.Context, c es.Command) (es.Result, error) {
	result, err := w.CarryOut(ctx, c)
	if err != nil || result.Version == 0 {
		return result, err
	}
	commit, err := w.Store.Find(ctx, c.Aggregate, result.Version)
	if err != nil || commit.CommandID != c.ID {
		return result, err // another command's commit: whoever carries that out publishes it
	}
	result.Duplicate = false
	return result, w.Events.Publish(ctx, commit)
}

// final says that the bus will not deliver the command again. Faults of the server cost
// no attempt.
func final(ctx context.Context, err error) bool {
	switch {
	case err == nil, errors.Is(err, es.ErrRefused), es.IsPermanent(err):
		return true
	case errors.Is(err, es.ErrUnavailable), errors.Is(err, es.ErrUncertain), ctx.Err() != nil:
		return false
	}
	delivery, _ := es.DeliveryOf(ctx)
	return delivery.Attempt >= MaxDeliveries
}
