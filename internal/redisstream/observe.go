package redisstream

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

// errNoField is of an entry without the field that holds a message.
var errNoField = es.Corrupt("the entry has no field %q", Field)

// Publisher adds messages and tells its observer, if there is one.
type Publisher struct {
	Redis    redis.Cmdable
	Observer es.Observer
	// Logger hears of panics of the observer. Defaults to slog.Default().
	Logger *slog.Logger
}

// Publish is [Publish].
func (p Publisher) Publish(ctx context.Context, topic string, messages ...[]byte) error {
	if p.Observer == nil {
		return Publish(ctx, p.Redis, topic, messages...)
	}
	began := time.Now()
	err := Publish(ctx, p.Redis, topic, messages...)
	told := es.Tell(ctx, p.Observer, es.Published{Topic: topic, Messages: len(messages), Took: time.Since(began), Err: err})
	if told != nil {
		log := p.Logger
		if log == nil {
			log = slog.Default()
		}
		log.ErrorContext(ctx, "an observer panics", "topic", topic, "reason", told)
	}
	return err
}

// tell tells the observer, and logs a panic of it. Callers on the way of every message ask
// first whether there is one.
func tell[O es.Observation](ctx context.Context, s *subscription, o O) {
	if err := es.Tell(ctx, s.Observer, o); err != nil {
		s.log.Warn(ctx, "an observer panics", "group", s.Group, "reason", err)
	}
}

func (t *topic) tellUndecodable(ctx context.Context, e *entry) {
	reason := es.DeserializationFailed
	switch {
	case errors.Is(e.bad, errNoField):
		reason = es.MissingMessageField
	case errors.Is(e.bad, es.ErrUnknownType):
		reason = es.UnknownMessageType
	}
	tell(ctx, t.subscription, es.Undecodable{Delivery: e.delivery(), Reason: reason, Err: e.bad})
}

// ability is what a subscription must be able to do with a topic.
type ability int

const (
	toBegin ability = iota
	toRead
	toLease
	toSettle
	abilities
)

// condition is whether a subscription can work on a topic. It tells of changes, in order.
type condition struct {
	topic   string
	mu      sync.Mutex
	failing [abilities]bool
	since   time.Time
}

// cannot remembers that a is not possible now.
func (s *subscription) cannot(ctx context.Context, c *condition, a ability, cause error) {
	if s.Observer == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.failing == [abilities]bool{}
	c.failing[a] = true
	if first {
		c.since = time.Now()
		tell(ctx, s, es.Unavailable{Topic: c.topic, Group: s.Group, Consumer: s.Consumer, Cause: cause})
	}
}

// can remembers that a is possible.
func (s *subscription) can(ctx context.Context, c *condition, a ability) {
	if s.Observer == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.failing[a] {
		return
	}
	c.failing[a] = false
	if c.failing == [abilities]bool{} {
		tell(ctx, s, es.Healed{Topic: c.topic, Group: s.Group, Consumer: s.Consumer, After: time.Since(c.since)})
	}
}

// begun tells that the subscription begins. The result is to be called as it ends.
func (s *subscription) begun(ctx context.Context) func() {
	for _, name := range s.Topics {
		s.conditions = append(s.conditions, &condition{topic: name})
		tell(ctx, s, es.Subscribed{Topic: name, Group: s.Group, Consumer: s.Consumer})
	}
	return func() {
		for _, name := range s.Topics {
			tell(context.WithoutCancel(ctx), s, es.Unsubscribed{Topic: name, Group: s.Group, Consumer: s.Consumer})
		}
	}
}

func (t *topic) tellBuried(ctx context.Context, e *entry, reason recovery.Reason, cause error) {
	if t.Observer == nil {
		return
	}
	d := e.delivery()
	d.Attempt = max(e.failures, 1)
	tell(ctx, t.subscription, es.DeadLettered{Delivery: d, Reason: string(reason), Err: cause})
}

// tellOwner tells whoever reads these messages that one is given up.
func (t *topic) tellOwner(ctx context.Context, e *entry, cause error) {
	if t.Buried != nil && e.msg != nil {
		t.Buried(ctx, e.msg, cause)
	}
}

// teller tells for the parts of a subscription that have no log.
type teller struct{ *subscription }

func (t teller) Observe(ctx context.Context, o es.Observation) { tell(ctx, t.subscription, o) }
