package dispatch

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/shop"
)

// MaxDeliveries is how often a worker's subscription tries a command that fails for
// reasons of its own, before it becomes a dead letter.
const MaxDeliveries = 5

// Worker carries out commands that come over the bus.
type Worker struct {
	shop    *shop.Shop
	store   es.Finder
	events  es.EventPublisher
	answers redis.Cmdable
	done    atomic.Int64
}

// NewWorker is a worker over a store, which publishes what it stores, and answers where
// the desks read.
func NewWorker(store shop.Store, events es.EventPublisher, answers redis.Cmdable) *Worker {
	return &Worker{shop: shop.New(recorder{store}), store: store, events: events, answers: answers}
}

// Done counts the commands that this worker has answered.
func (w *Worker) Done() int64 { return w.done.Load() }

// Handle is an [es.CommandHandler]. The bus acknowledges a command when it returns, so
// a worker that dies before has it delivered to another one: which finds the commit of
// this very command, publishes it (again, if need be) and answers as if it were the first.
func (w *Worker) Handle(ctx context.Context, c es.Command) (es.Result, error) {
	result, err := w.carryOut(ctx, c)
	if desk, ok := c.Header.Lookup(headerReplyTo); ok && final(ctx, err) {
		if err := answerTo(&c, result, err).send(ctx, w.answers, desk); err != nil {
			return result, err
		}
		w.done.Add(1)
	}
	return result, err
}

func (w *Worker) carryOut(ctx context.Context, c es.Command) (es.Result, error) {
	var commit es.Commit
	result, err := w.shop.Handle(context.WithValue(ctx, recordKey{}, &commit), c)
	if err == nil && result.Duplicate {
		commit, err = w.store.Find(ctx, c.Aggregate, result.Version)
	}
	if err != nil || commit.CommandID != c.ID {
		return result, err // another command's commit: whoever carries that out publishes it
	}
	result.Duplicate = false
	return result, w.events.Publish(ctx, commit)
}

// recorder is a store that leaves what it appended with whoever waits for it in the
// context, so that it need not be read again to be published.
type recorder struct{ shop.Store }

type recordKey struct{}

// Append implements [es.Appender].
func (r recorder) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (es.Appended, error) {
	appended, err := r.Store.Append(ctx, o, commits...)
	if record, ok := ctx.Value(recordKey{}).(*es.Commit); ok && err == nil {
		*record = commits[len(commits)-1]
	}
	return appended, err
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
