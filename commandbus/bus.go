// Package commandbus carries commands over Redis streams, as Wow does: from whoever
// sends them to one of the processes that carry them out.
package commandbus

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisstream"
)

// Bus is an [es.CommandSender] and an [es.CommandSubscriber]. It is safe for concurrent
// use once its fields are set.
type Bus struct {
	// NewID makes the ids of commands and the names of consumers. Defaults to an
	// [es.IDGenerator] whose machine id is drawn at random.
	NewID func() string
	// Middleware wraps the handlers of every subscription. A panic of a handler is an
	// error in any case.
	Middleware []es.Middleware
	// Observer is told what becomes of messages. Defaults to none.
	Observer es.Observer
	// Logger hears what no caller can be told. Defaults to [slog.Default].
	Logger *slog.Logger
	// Notifier tells whoever waits for a command that it was made a dead letter: that it has
	// failed. Where a body cannot be read, the header has to be, which it is of JSON. A
	// dead letter that is replayed may still be carried out. Defaults to none.
	Notifier es.Notifier
	// Requests is asked, in a group that is SharedWithWow, whether a command that a Kotlin
	// process took itself was carried out: one that was not is handled. An eventstore.Store
	// can tell. Without it such commands are handled all; the store then tells repeats.
	Requests Requests

	rdb   redis.UniversalClient
	codec es.Codec
	newID func() string
}

// Requests knows which commands were carried out, by their request ids.
type Requests interface {
	HasRequest(ctx context.Context, id es.AggregateID, requestID string) (bool, error)
}

// New is a bus on a standalone server, Sentinel or a cluster.
func New(rdb redis.UniversalClient, codec es.Codec) *Bus {
	return &Bus{rdb: rdb, codec: codec, newID: es.NewRandomIDs()}
}

// Group is the name of the group in which the processes of a service carry out
// commands: Wow's, so that Kotlin processes may share it.
func Group(context string) string { return context + ".CommandDispatcher" }

func (b *Bus) publisher() redisstream.Publisher {
	return redisstream.Publisher{Redis: b.rdb, Observer: b.Observer, Logger: b.Logger}
}

func (b *Bus) id() string {
	if b.NewID != nil {
		return b.NewID()
	}
	return b.newID()
}

// Send puts a command into its aggregate's stream. Unset fields get their defaults. A
// reply that is lost may let it arrive twice; the request id keeps it from being
// carried out twice.
func (b *Bus) Send(ctx context.Context, c es.Command) error {
	c.Complete(b.id, time.Now())
	err := c.Validate()
	if err == nil {
		var data []byte
		if data, err = b.codec.EncodeCommand(&c); err == nil {
			err = b.publisher().Publish(ctx, rediskey.Command(c.Aggregate.Type), data)
		}
	}
	if err != nil {
		return &es.Error{Op: "send " + c.Name, Aggregate: c.Aggregate, RequestID: c.RequestID, Err: err}
	}
	return nil
}

// Prepare makes the subscription's group, so that nothing sent from then on is missed.
// A new group begins at the beginning of the stream, unless Start says otherwise. A
// broadcast has nothing to prepare: its group begins and ends with Subscribe.
func (b *Bus) Prepare(ctx context.Context, s es.Subscription) error {
	return b.with("prepare", s, func(c redisstream.Config) error {
		if s.Broadcast {
			return nil
		}
		return redisstream.Prepare(ctx, b.rdb, c)
	})
}

// Subscribe implements [es.CommandSubscriber]. A command is acknowledged when the
// handler returns nil or a refusal, which is the aggregate's answer and not a fault.
// Void commands are acknowledged without a call.
func (b *Bus) Subscribe(ctx context.Context, s es.Subscription, h es.CommandHandler) error {
	handle := es.Chain(func(ctx context.Context, m any) error {
		_, err := h(ctx, m.(es.Command)) //nolint:forcetypeassert // decode makes no other
		return err
	}, b.Middleware...)
	return b.with("subscribe", s, func(c redisstream.Config) error {
		return redisstream.Subscribe(ctx, b.rdb, c, b.decode, func(ctx context.Context, m any) error {
			if passed, err := b.passOver(ctx, s, m); passed || err != nil {
				return err
			}
			if err := handle(ctx, m); !errors.Is(err, es.ErrRefused) {
				return err
			}
			return nil
		})
	})
}

// passOver reports that a command is none of this group's business.
func (b *Bus) passOver(ctx context.Context, s es.Subscription, m any) (bool, error) {
	c, _ := m.(es.Command)
	if c.Void || !s.SharedWithWow || b.Requests == nil || !strings.EqualFold(c.Header.Get(es.HeaderLocalFirst), "true") {
		return c.Void, nil
	}
	return b.Requests.HasRequest(ctx, c.Aggregate, c.RequestID)
}

// with calls f with the configuration of s, and says where an error happened.
func (b *Bus) with(op string, s es.Subscription, f func(redisstream.Config) error) error {
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
		c := redisstream.NewConfig(s, b.id(), rediskey.Command)
		c.Observer, c.Logger = b.Observer, b.Logger
		if b.Notifier != nil {
			c.Buried = b.buried
		}
		err = f(c)
	}
	if err != nil {
		return &es.Error{Op: op + " to commands", Err: err}
	}
	return nil
}

func (b *Bus) decode(data []byte) (any, string, error) {
	c, err := b.codec.DecodeCommand(data)
	if err != nil && b.Notifier != nil {
		c = envelope(data)
	}
	return c, c.Aggregate.ID, err
}

// envelope is what can be read of a command of which not all can.
func envelope(data []byte) es.Command {
	var m struct {
		ID, Name, ContextName, AggregateName, AggregateID, TenantID, RequestID string

		Header map[string]string
	}
	if json.Unmarshal(data, &m) != nil {
		return es.Command{}
	}
	c := es.Command{
		ID: m.ID, Name: m.Name, RequestID: m.RequestID,
		Aggregate: es.AggregateID{Type: es.AggregateType{Context: m.ContextName, Name: m.AggregateName}, Tenant: m.TenantID, ID: m.AggregateID},
	}
	for key, value := range m.Header {
		c.Header.Set(key, value)
	}
	return c
}

// buried tells whoever waits that nobody will carry the command out.
func (b *Bus) buried(ctx context.Context, m any, cause error) {
	c, _ := m.(es.Command)
	s := processed(&c, 0)
	s.Fail(cause)
	b.Notifier.Notify(ctx, c.Header, s)
}

// processed is the signal of a command that was carried out.
func processed(c *es.Command, version int) es.Signal {
	return es.Signal{
		ID: c.ID, CommandID: c.ID, Aggregate: c.Aggregate, Stage: es.StageProcessed, Version: version, Code: es.CodeOK, Time: time.Now(),
		Function: es.Function{Kind: "COMMAND", Context: c.Aggregate.Type.Context, Processor: c.Aggregate.Type.Name, Name: c.Name},
	}
}
