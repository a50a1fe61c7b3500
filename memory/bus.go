package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/headwater-go/headwater/es"
)

// What a subscription leaves unset.
const (
	maxDeliveries = 5
	firstPause    = 10 * time.Millisecond
	longestPause  = 30 * time.Second
	grace         = 10 * time.Second
)

// bus keeps every message for as long as it lives, since a group that comes later may
// begin at the first one.
type bus[M any] struct {
	kind        string   // ends the names of its topics
	start       es.Start // where a new group begins that does not say; "" = it must
	aggregateOf func(M) es.AggregateID
	copied      func(M) M

	mu      sync.Mutex
	changed *sync.Cond
	topics  map[typeKey][]stored[M]
	groups  map[groupKey]*group
	readers int // that there ever were
}

// stored is a message and when it was published.
type stored[M any] struct {
	message M
	ms      int64
}

func newBus[M any](kind string, start es.Start, aggregateOf func(M) es.AggregateID, copied func(M) M) *bus[M] {
	b := &bus[M]{
		kind: kind, start: start, aggregateOf: aggregateOf, copied: copied,
		topics: map[typeKey][]stored[M]{}, groups: map[groupKey]*group{},
	}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// publish adds messages of one type, which must be the bus's own copies.
func (b *bus[M]) publish(t es.AggregateType, messages ...M) {
	b.mu.Lock()
	defer b.mu.Unlock()
	topic := b.topics[keyOf(t)]
	ms := time.Now().UnixMilli()
	if n := len(topic); n > 0 {
		ms = max(ms, topic[n-1].ms)
	}
	for _, m := range messages {
		topic = append(topic, stored[M]{m, ms})
	}
	b.topics[keyOf(t)] = topic
	b.changed.Broadcast()
}

// reader is one running subscription.
type reader[M any] struct {
	es.Subscription
	id     int
	logger *slog.Logger
	handle func(context.Context, M) error
	parked map[*delivery[M]]*time.Timer
}

// subscribe handles messages until ctx is done, and what runs then for the grace.
func (b *bus[M]) subscribe(ctx context.Context, logger *slog.Logger, s es.Subscription, handle func(context.Context, M) error) error {
	r := &reader[M]{Subscription: withDefaults(s), logger: logger, handle: handle, parked: map[*delivery[M]]*time.Timer{}}
	if logger == nil {
		r.logger = slog.Default()
	}
	if err := b.join(r); err != nil {
		return &es.Error{Op: "subscribe", Err: err}
	}
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(r.Grace, end)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})()
	var workers sync.WaitGroup
	for range r.Workers {
		workers.Go(func() { b.work(ctx, lasting, r) })
	}
	workers.Wait()
	b.leave(r)
	return nil
}

func withDefaults(s es.Subscription) es.Subscription {
	setDefault(&s.Workers, 1)
	setDefault(&s.MaxDeliveries, maxDeliveries)
	setDefault(&s.Backoff, firstPause)
	setDefault(&s.MaxBackoff, longestPause)
	setDefault(&s.Grace, grace)
	return s
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// work handles one message after the other until ctx is done.
func (b *bus[M]) work(ctx, lasting context.Context, r *reader[M]) {
	for turn := 0; ; turn++ {
		d := b.take(ctx, r, turn)
		if d == nil {
			return
		}
		if r.Valve.Wait(ctx) != nil {
			b.again(r, d, 0, 0)
			return
		}
		err := guarded(func() error { return r.handle(es.WithDelivery(lasting, d.Delivery), b.copied(d.message)) })
		d.Failed = es.FailuresOf(err, d.Failed)
		switch {
		case err == nil:
			b.done(d)
		case lasting.Err() != nil:
			b.again(r, d, 0, 0) // the reader has left; another one gets the message
		case errors.Is(err, es.ErrUnavailable), errors.Is(err, es.ErrUncertain):
			b.again(r, d, 0, r.pause(1, err)) // no fault of the message
		case es.IsPermanent(err), d.Attempt >= r.MaxDeliveries:
			r.logger.ErrorContext(lasting, "message dropped", "group", r.Group,
				"aggregate", b.aggregateOf(d.message).String(), "error", err)
			b.done(d)
		default:
			b.again(r, d, 1, r.pause(d.Attempt, err))
		}
	}
}

// pause is how long to wait after the n-th failure.
func (r *reader[M]) pause(n int, err error) time.Duration {
	if asked, ok := es.RetryDelay(err); ok {
		return asked
	}
	if n >= 20 {
		return r.MaxBackoff
	}
	return min(r.Backoff<<(n-1), r.MaxBackoff)
}

// guarded makes a panic an error, so that one message cannot end the process.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			cause, ok := p.(error)
			if !ok {
				cause = errors.New(fmt.Sprint(p))
			}
			err = fmt.Errorf("%w: %w", es.ErrPanic, cause)
		}
	}()
	return f()
}
