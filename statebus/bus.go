// Package statebus carries state events over Redis streams, as Wow does: each is a
// commit together with the state that it led to.
package statebus

import (
	"context"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisstream"
)

// Bus is an [es.StatePublisher] and an [es.StateSubscriber] for aggregates whose state
// has the type S; with [es.Raw] it carries states of every type, undecoded. It is safe
// for concurrent use once its fields are set.
type Bus[S any] struct {
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
func New[S any](rdb redis.UniversalClient, codec es.Codec) *Bus[S] {
	return &Bus[S]{rdb: rdb, codec: codec, newID: es.NewRandomIDs()}
}

// Group is the name of a processor's group, as Wow names it: its own is SnapshotDispatcher.
func Group(context, processor string) string { return context + "." + processor }

func (b *Bus[S]) publisher() redisstream.Publisher {
	return redisstream.Publisher{Redis: b.rdb, Observer: b.Observer, Logger: b.Logger}
}

func (b *Bus[S]) id() string {
	if b.NewID != nil {
		return b.NewID()
	}
	return b.newID()
}

// Publish implements [es.StatePublisher]. The state must be an S.
func (b *Bus[S]) Publish(ctx context.Context, e es.StateEvent) error {
	err := e.Validate()
	if _, ok := e.State.(S); !ok && err == nil {
		err = es.Invalid("the state is a %T", e.State)
	}
	if err == nil {
		var data []byte
		if data, err = b.codec.EncodeStateEvent(&e); err == nil {
			err = b.publisher().Publish(ctx, rediskey.State(e.Aggregate.Type), data)
		}
	}
	if err != nil {
		return &es.Error{Op: "publish state", Aggregate: e.Aggregate, Version: e.Version, RequestID: e.RequestID, Err: err}
	}
	return nil
}

// Prepare makes the subscription's group, so that nothing published from then on is
// missed. A new group begins at the beginning of the stream, unless Start says otherwise.
// A broadcast has nothing to prepare: its group begins and ends with Subscribe.
func (b *Bus[S]) Prepare(ctx context.Context, s es.Subscription) error {
	return b.with("prepare", s, func(c redisstream.Config) error {
		if s.Broadcast {
			return nil
		}
		return redisstream.Prepare(ctx, b.rdb, c)
	})
}

// Subscribe implements [es.StateSubscriber]. The events' State is an S. In a group that is
// SharedWithWow, those that a Kotlin process took itself are acknowledged without a call:
// if it died before it was done, nobody handles them.
func (b *Bus[S]) Subscribe(ctx context.Context, s es.Subscription, h func(context.Context, es.StateEvent) error) error {
	handle := es.Chain(func(ctx context.Context, m any) error {
		return h(ctx, m.(es.StateEvent)) //nolint:forcetypeassert // decode makes no other
	}, b.Middleware...)
	return b.with("subscribe", s, func(c redisstream.Config) error {
		return redisstream.Subscribe(ctx, b.rdb, c, b.decode, func(ctx context.Context, m any) error {
			e, _ := m.(es.StateEvent)
			if s.SharedWithWow && strings.EqualFold(e.Header.Get(es.HeaderLocalFirst), "true") || s.Skips(ctx, e.Header) {
				return nil
			}
			return handle(ctx, m)
		})
	})
}

// with calls f with the configuration of s, and says where an error happened.
func (b *Bus[S]) with(op string, s es.Subscription, f func(redisstream.Config) error) error {
	if s.Start == "" {
		s.Start = es.FromBeginning
	}
	var err error
	for _, t := range s.Aggregates {
		if err == nil {
			err = t.Validate()
		}
	}
	if err == nil {
		c := redisstream.NewConfig(s, b.id(), rediskey.State)
		c.Observer, c.Logger = b.Observer, b.Logger
		err = f(c)
	}
	if err != nil {
		return &es.Error{Op: op + " to states", Err: err}
	}
	return nil
}

func (b *Bus[S]) decode(data []byte) (any, string, error) {
	var state S
	e, err := b.codec.DecodeStateEvent(data, &state)
	if err != nil {
		return nil, "", err
	}
	return e, e.Aggregate.ID, nil
}
