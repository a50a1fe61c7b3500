package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/headwater-go/headwater/es"
)

// The handler of a message is called this often at most, and waits doubling from the
// first pause, unless its error asks for another.
const (
	maxDeliveries = 5
	firstPause    = 10 * time.Millisecond
)

// bus keeps every message for as long as it lives, since a group that comes later
// begins at the first one.
type bus[M any] struct {
	aggregateOf func(M) es.AggregateID
	copied      func(M) M

	mu      sync.Mutex
	changed *sync.Cond
	topics  map[typeKey][]M
	groups  map[groupKey]*group
}

type groupKey struct {
	typeKey
	name string
}

// group is how far the readers that share one topic are.
type group struct {
	// next is the first message that nobody has looked at.
	next int
	// waiting are earlier messages, in order, each behind one of its aggregate.
	waiting []int
	// busy are the aggregates of which a message is being handled.
	busy map[es.AggregateID]bool
}

// delivery is one message on its way through a handler.
type delivery[M any] struct {
	group   *group
	index   int
	message M
}

func newBus[M any](aggregateOf func(M) es.AggregateID, copied func(M) M) *bus[M] {
	b := &bus[M]{aggregateOf: aggregateOf, copied: copied, topics: map[typeKey][]M{}, groups: map[groupKey]*group{}}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// publish adds messages of one type, which must be the bus's own copies.
func (b *bus[M]) publish(t es.AggregateType, messages ...M) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.topics[keyOf(t)] = append(b.topics[keyOf(t)], messages...)
	b.changed.Broadcast()
}

// subscribe handles one message after the other until ctx is done.
func (b *bus[M]) subscribe(ctx context.Context, logger *slog.Logger, s es.Subscription, handle func(context.Context, M) error) error {
	if err := checkSubscription(s); err != nil {
		return &es.Error{Op: "subscribe", Err: err}
	}
	if logger == nil {
		logger = slog.Default()
	}
	defer context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})()
	for turn := 0; ; turn++ {
		d := b.take(ctx, s, turn)
		if d == nil {
			return nil
		}
		done, dropped := b.deliver(ctx, d.message, handle)
		if dropped != nil {
			logger.ErrorContext(ctx, "message dropped", "group", s.Group,
				"aggregate", b.aggregateOf(d.message).String(), "error", dropped)
		}
		b.finish(d, done)
	}
}

func checkSubscription(s es.Subscription) error {
	if s.Group == "" {
		return es.Invalid("group is empty")
	}
	if len(s.Aggregates) == 0 {
		return es.Invalid("group %q reads no aggregates", s.Group)
	}
	for _, t := range s.Aggregates {
		if err := t.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// take waits for a message of one of the types, which take turns at being first; nil
// when ctx is done.
func (b *bus[M]) take(ctx context.Context, s es.Subscription, turn int) *delivery[M] {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ctx.Err() == nil {
		for i := range s.Aggregates {
			t := s.Aggregates[(turn+i)%len(s.Aggregates)]
			if d := b.pick(groupKey{keyOf(t), s.Group}); d != nil {
				return d
			}
		}
		b.changed.Wait()
	}
	return nil
}

// pick takes the first message that has no earlier one of its aggregate before it.
func (b *bus[M]) pick(key groupKey) *delivery[M] {
	g := b.groups[key]
	if g == nil {
		g = &group{busy: map[es.AggregateID]bool{}}
		b.groups[key] = g
	}
	topic := b.topics[key.typeKey]
	free := func(i int) bool { return !g.busy[b.aggregateOf(topic[i])] }
	if at := slices.IndexFunc(g.waiting, free); at >= 0 {
		i := g.waiting[at]
		g.waiting = slices.Delete(g.waiting, at, at+1)
		return b.start(g, i, topic[i])
	}
	for g.next < len(topic) {
		i := g.next
		g.next++
		if free(i) {
			return b.start(g, i, topic[i])
		}
		g.waiting = append(g.waiting, i)
	}
	return nil
}

func (b *bus[M]) start(g *group, i int, message M) *delivery[M] {
	g.busy[b.aggregateOf(message)] = true
	return &delivery[M]{group: g, index: i, message: message}
}

// finish lets the next message of the aggregate go, or the same again if it is not done.
func (b *bus[M]) finish(d *delivery[M], done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(d.group.busy, b.aggregateOf(d.message))
	if !done {
		at, _ := slices.BinarySearch(d.group.waiting, d.index)
		d.group.waiting = slices.Insert(d.group.waiting, at, d.index)
	}
	b.changed.Broadcast()
}

// deliver calls the handler until the message is handled or dropped; it is not done
// where ctx ended before that, so that another reader of the group is to have it.
func (b *bus[M]) deliver(ctx context.Context, message M, handle func(context.Context, M) error) (done bool, dropped error) {
	for attempt, pause := 1, firstPause; ; attempt, pause = attempt+1, 2*pause {
		err := guarded(func() error { return handle(ctx, b.copied(message)) })
		if err == nil {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // the reader has left; another one gets the message
		}
		if attempt == maxDeliveries || es.IsPermanent(err) {
			return true, err
		}
		wait := pause
		if asked, ok := es.RetryDelay(err); ok {
			wait = asked
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(wait):
		}
	}
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
