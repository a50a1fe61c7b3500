package redisstream

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

// Config says what one subscription reads, and how.
type Config struct {
	es.Subscription
	// Topics are the streams that are read.
	Topics []string
	// Consumer is this subscription's name in the group; no other one may have it.
	Consumer string
	// Observer is told what becomes of messages. Defaults to none.
	Observer es.Observer
	// Buried is told of each message that was made a dead letter, or stays pending instead:
	// msg is what the decoder made of it, with its error too. Defaults to nobody.
	Buried func(ctx context.Context, msg any, cause error)
	// Logger hears what no caller can be told. Defaults to slog.Default().
	Logger *slog.Logger
}

// Decoder reads a message; what it returns may share the memory of data. Messages of one key are handled
// one after another, in the order of the stream. An error buries the message: as
// undecodable, or as of an unknown type where it is an [es.ErrUnknownType].
type Decoder func(data []byte) (msg any, key string, err error)

// Handler handles one message; what it returns is the acknowledgement (see
// [es.Permanent], [es.RetryAfter]). The context carries the [es.Delivery], and ends
// when the grace of a subscription that stops is over.
type Handler func(ctx context.Context, msg any) error

func (c Config) withDefaults() Config {
	setDefault(&c.Workers, 64)
	setDefault(&c.Prefetch, 2*c.Workers)
	setDefault(&c.PrefetchBytes, 64<<20)
	setDefault(&c.MaxDeliveries, 5)
	setDefault(&c.Backoff, 500*time.Millisecond)
	setDefault(&c.MaxBackoff, 30*time.Second)
	setDefault(&c.Lease, 15*time.Second)
	setDefault(&c.Sweep, 5*time.Second)
	setDefault(&c.Grace, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate refuses what would otherwise fail, or hang, much later.
func (c Config) validate() error {
	if strings.TrimSpace(c.Group) == "" {
		return es.Invalid("group is blank")
	}
	if c.Consumer == "" {
		return es.Invalid("consumer is empty")
	}
	if len(c.Topics) == 0 {
		return es.Invalid("no topics")
	}
	if !validStart(c.Start) {
		return es.Invalid("start %q is neither es.FromBeginning, es.FromNow nor the id of an entry", string(c.Start))
	}
	for i, t := range c.Topics {
		if strings.TrimSpace(t) == "" || strings.ContainsAny(t, "{}") {
			return es.Invalid("topic %q is blank or holds a brace", t)
		}
		if slices.Contains(c.Topics[:i], t) {
			return es.Invalid("topic %q is named twice", t)
		}
	}
	for _, n := range []struct {
		what string
		ok   bool
	}{
		{"workers", c.Workers > 0}, {"prefetch", c.Prefetch > 0 && c.PrefetchBytes > 0}, {"max deliveries", c.MaxDeliveries > 0},
		{"backoff", c.Backoff >= time.Millisecond && c.Backoff <= c.MaxBackoff}, {"lease", c.Lease >= 100*time.Millisecond},
		{"sweep", c.Sweep >= 10*time.Millisecond}, {"grace", c.Grace > 0},
	} {
		if !n.ok {
			return es.Invalid("%s is out of range", n.what)
		}
	}
	return nil
}

// validStart takes what XGROUP CREATE takes: 0, $, <milliseconds> and <milliseconds>-<number>.
func validStart(s es.Start) bool {
	if s == "" || s == es.FromNow {
		return true
	}
	ms, number, two := strings.Cut(string(s), "-")
	_, err := strconv.ParseUint(ms, 10, 64)
	if err == nil && two {
		_, err = strconv.ParseUint(number, 10, 64)
	}
	return err == nil
}

// NewConfig is the configuration of s, for a bus whose streams are named by topic. A
// broadcast gets a group of its own.
func NewConfig(s es.Subscription, consumer string, topic func(es.AggregateType) string) Config {
	c := Config{Subscription: s, Consumer: consumer}
	for _, t := range s.Aggregates {
		c.Topics = append(c.Topics, topic(t))
	}
	if c.Broadcast {
		c.Group, c.Start = recovery.EphemeralPrefix+c.Group+":"+consumer, es.FromNow
	}
	return c
}
