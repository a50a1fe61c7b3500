// Package eventbus carries commits over Redis streams, as Wow does: every group gets
// every commit that is published.
package eventbus

import (
	"context"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisstream"
)

// Bus is an [es.EventPublisher] and an [es.EventSubscriber]. It is safe for concurrent
// use once its fields are set.
type Bus struct {
	// NewID makes the names of consumers. Defaults to an [es.IDGenerator] whose machine
	// id is drawn at random.
	NewID func() string
	// Middleware wraps the handlers of every subscription. A panic of a handler is an
	// error in any case.
	Middleware []es.Middleware
	// Observer is told what becomes of messages. Defaults to none.
	Observer es.Observer
	// Logger hears what no caller can be told. Defaults to [slog.Default].
	Logger *slog.Logger

	rdb   redis.UniversalClient
	codec es.Codec
	newID func() string
}

// New is a bus on a standalone server, Sentinel or a cluster.
func New(rdb redis.UniversalClient, codec es.Codec) *Bus {
	return &Bus{rdb: rdb, codec: codec, newID: es.NewRandomIDs()}
}

// Group is the name of a processor's group, as Wow names it: its own are
// DomainEventDispatcher, ProjectionDispatcher and StatelessSagaDispatcher.
func Group(context, processor string) string { return context + "." + processor }

func (b *Bus) publisher() redisstream.Publisher {
	return redisstream.Publisher{Redis: b.rdb, Observer: b.Observer, Logger: b.Logger}
}

func (b *Bus) id() string {
	if b.NewID != nil {
		return b.NewID()
	}
	return b.newID()
}

// Publish implements [es.EventPublisher]: the commits, all of one aggregate, arrive in
// the order given, and none after one that could not be added. A reply that is lost may
// let them arrive twice.
func (b *Bus) Publish(ctx context.Context, commits ...es.Commit) error {
	if len(commits) == 0 {
		return nil
	}
	first := commits[0].Aggregate
	messages := make([][]byte, len(commits))
	for i := range commits {
		c := &commits[i]
		var err error
		if c.Aggregate != first {
			err = es.Invalid("commit %d is of another aggregate than %s", i+1, first)
		} else if err = c.Validate(); err == nil {
			messages[i], err = b.codec.EncodeCommit(c)
		}
		if err != nil {
			return &es.Error{Op: "publish", Aggregate: c.Aggregate, Version: c.Version, RequestID: c.RequestID, Err: err}
		}
	}
	if err := b.publisher().Publish(ctx, rediskey.Event(first.Type), messages...); err != nil {
		return &es.Error{Op: "publish", Aggregate: first, Version: commits[0].Version, RequestID: commits[0].RequestID, Err: err}
	}
	return nil
}

// Prepare makes the subscription's group, so that nothing published from then on is
// missed. A new group on a stream that has entries must say where it begins. A broadcast
// has nothing to prepare: its group begins and ends with Subscribe.
func (b *Bus) Prepare(ctx context.Context, s es.Subscription) error {
	return b.with("prepare", s, func(c redisstream.Config) error {
		if s.Broadcast {
			return nil
		}
		return redisstream.Prepare(ctx, b.rdb, c)
	})
}

// Subscribe implements [es.EventSubscriber]. In a group that is SharedWithWow, commits
// that a Kotlin process took itself are acknowledged without a call: if it died before
// it was done, nobody handles them.
func (b *Bus) Subscribe(ctx context.Context, s es.Subscription, h func(context.Context, es.Commit) error) error {
	handle := es.Chain(func(ctx context.Context, m any) error {
		return h(ctx, m.(es.Commit)) //nolint:forcetypeassert // decode makes no other
	}, b.Middleware...)
	return b.with("subscribe", s, func(c redisstream.Config) error {
		return redisstream.Subscribe(ctx, b.rdb, c, b.decode, func(ctx context.Context, m any) error {
			e, _ := m.(es.Commit)
			if s.SharedWithWow && strings.EqualFold(e.Header.Get(es.HeaderLocalFirst), "true") || s.Skips(ctx, e.Header) {
				return nil
			}
			return handle(ctx, m)
		})
	})
}

// with calls f with the configuration of s, and says where an error happened.
func (b *Bus) with(op string, s es.Subscription, f func(redisstream.Config) error) error {
	var err error
	for _, t := range s.Aggregates {
		if err == nil {
			err = t.Validate()
		}
	}
	if err == nil {
		c := redisstream.NewConfig(s, b.id(), rediskey.Event)
		c.Observer, c.Logger = b.Observer, b.Logger
		err = f(c)
	}
	if err != nil {
		return &es.Error{Op: op + " to commits", Err: err}
	}
	return nil
}

func (b *Bus) decode(data []byte) (any, string, error) {
	c, err := b.codec.DecodeCommit(data)
	return c, c.Aggregate.ID, err
}
