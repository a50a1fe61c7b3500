package es

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// CommandSender sends commands to whoever carries them out.
type CommandSender interface {
	Send(ctx context.Context, c Command) error
}

// EventPublisher publishes commits of one aggregate, in the order given.
type EventPublisher interface {
	Publish(ctx context.Context, commits ...Commit) error
}

// StatePublisher publishes a state event.
type StatePublisher interface {
	Publish(ctx context.Context, e StateEvent) error
}

// Start is where a group begins that does not exist yet; an existing one keeps its
// place. Besides the two constants it may be the id of a stream entry, after which the
// group begins.
type Start string

// Where a new group begins.
const (
	FromBeginning Start = "0"
	FromNow       Start = "$"
)

// Subscription says who reads what, and how. The zero value of each knob is its default.
type Subscription struct {
	// Group names the readers that share the messages: each is handled by one of them.
	Group string
	// Aggregates are the types whose messages are read.
	Aggregates []AggregateType
	// Start is where a new group begins. Commands and state snapshots begin at the
	// beginning by default. An event handler's new group on a stream that has entries
	// already must say it: its zero value is an [ErrStartRequired] there.
	Start Start
	// Workers handle messages side by side; those of one aggregate follow each other.
	// Defaults to 64.
	Workers int
	// Prefetch limits the messages that are held and not done. Defaults to 2 × Workers.
	Prefetch int
	// PrefetchBytes limits the size of what is held and not done as well; as much again may
	// wait for another try. The size of a message is known when it is there: the limit is
	// passed by one message of each topic, and by one reply where messages suddenly grow.
	// Defaults to 64 MiB.
	PrefetchBytes int
	// MaxDeliveries limits how often a failing message is tried. Defaults to 5.
	MaxDeliveries int
	// Backoff is the pause after the first failure; it doubles up to MaxBackoff, with
	// jitter. Defaults to 500 ms and 30 s.
	Backoff, MaxBackoff time.Duration
	// Lease is how long a consumer that fell silent keeps its messages; it is renewed
	// three times as often. Defaults to 15 s.
	Lease time.Duration
	// Sweep is the pause between looks for messages of dead consumers. Defaults to 5 s.
	Sweep time.Duration
	// Grace is what handlers get to finish when the subscription ends. Defaults to 10 s.
	Grace time.Duration
	// Valve pauses the subscription while it is closed: handlers that run end as usual, none
	// begins, nothing more is read or taken over. What was read before, and a message that
	// comes while the last read still waits (2 s), stays with this subscription, which goes
	// on renewing its lease: to hand them to others, end it. Defaults to always open.
	Valve *Valve
	// NoRecovery leaves the messages of dead consumers to others.
	NoRecovery bool
	// NoDeadLetters leaves messages that cannot be handled pending, and reports them.
	NoDeadLetters bool
	// DeleteAcked deletes each message from its stream once every group of the stream has
	// acknowledged it, for streams that are queues: a group that is made later finds only
	// what is left. A group that nobody reads any more keeps all. It is one command on
	// Redis 8.2 and later (XACKDEL), and the same by a script elsewhere. In memory nothing
	// is deleted.
	DeleteAcked bool
	// Broadcast gives this subscription a group of its own, from now on, which ends with
	// it: every subscriber gets every message.
	Broadcast bool
	// Functions are those that the handler of commits stands for; [Functions.Subscribe]
	// sets them. A message that was sent again for another function is passed over.
	Functions []Function
	// SharedWithWow says that Kotlin nodes read the same group: this consumer then also
	// holds Wow's lease, and passes over what their LocalFirst bus has handled itself.
	SharedWithWow bool
}

// Delivery is what is known of the message that a handler is called for.
type Delivery struct {
	Topic string
	// ID is the entry's id in the stream; its first part is when it was written.
	ID    string
	Group string
	// Attempt counts the calls for this message in this group, this one included.
	Attempt int
	// Sent is when the message was written, by the server's clock.
	Sent time.Time
	// Recovered says that another consumer had it before.
	Recovered bool
	// Replayed says that it was a dead letter before.
	Replayed bool
	// Failed are the functions that are left of several that handle the message, with
	// why they failed last; empty = nothing is known to be done.
	Failed []FunctionFailure
}

type deliveryKey struct{}

// WithDelivery is the context of a handler that is called for d.
func WithDelivery(ctx context.Context, d Delivery) context.Context {
	return context.WithValue(ctx, deliveryKey{}, d)
}

// DeliveryOf is the delivery that a handler was called for.
func DeliveryOf(ctx context.Context) (Delivery, bool) {
	d, ok := ctx.Value(deliveryKey{}).(Delivery)
	return d, ok
}

// MessageHandler handles a message of any kind: a [Command], a [Commit] or a [StateEvent].
type MessageHandler func(ctx context.Context, message any) error

// Middleware wraps a handler; the first of several is the outermost.
type Middleware func(next MessageHandler) MessageHandler

// Chain is h within the middleware given.
func Chain(h MessageHandler, ms ...Middleware) MessageHandler {
	for _, m := range slices.Backward(ms) {
		h = m(h)
	}
	return h
}

// Timeout ends a handler's context after d.
func Timeout(d time.Duration) Middleware {
	return func(next MessageHandler) MessageHandler {
		return func(ctx context.Context, message any) error {
			ctx, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			return next(ctx, message)
		}
	}
}

// Logging logs each failure of a handler as a warning, and each success at debug level.
// Payloads are never logged.
func Logging(log *slog.Logger) Middleware {
	return func(next MessageHandler) MessageHandler {
		return func(ctx context.Context, message any) error {
			start := time.Now()
			err := next(ctx, message)
			d, _ := DeliveryOf(ctx)
			level := slog.LevelDebug
			if err != nil {
				level = slog.LevelWarn
			}
			log.Log(ctx, level, "message handled", "topic", d.Topic, "group", d.Group, "id", d.ID, "attempt", d.Attempt, "took", time.Since(start), "error", err)
			return err
		}
	}
}

// CommandSubscriber hands commands to a handler until ctx is done, then returns nil.
type CommandSubscriber interface {
	Subscribe(ctx context.Context, s Subscription, h CommandHandler) error
}

// EventSubscriber hands commits to a handler until ctx is done, then returns nil.
type EventSubscriber interface {
	Subscribe(ctx context.Context, s Subscription, h func(context.Context, Commit) error) error
}

// StateSubscriber hands state events to a handler until ctx is done, then returns nil.
type StateSubscriber interface {
	Subscribe(ctx context.Context, s Subscription, h func(context.Context, StateEvent) error) error
}
