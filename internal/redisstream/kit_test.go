package redisstream_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

const (
	patience = 30 * time.Second
	tick     = 5 * time.Millisecond
)

var topics atomic.Int64

func freshTopic() string { return fmt.Sprintf("stream.t%d:event", topics.Add(1)) }

// config is a subscription of group "g" that is quick in everything.
func config(names ...string) redisstream.Config {
	return redisstream.Config{
		Topics: names, Consumer: fmt.Sprintf("c%d", topics.Add(1)), Logger: slog.New(slog.DiscardHandler),
		Subscription: es.Subscription{
			Group: "g", Start: es.FromBeginning, Workers: 8, Backoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
			Lease: 300 * time.Millisecond, Sweep: 30 * time.Millisecond, Grace: 2 * time.Second,
		},
	}
}

// decode reads "<key>|<text>". A text that begins with "undecodable", "unknown" or
// "explode" cannot be read, each in its way.
func decode(data []byte) (any, string, error) {
	text := strings.Clone(string(data))
	key, body, ok := strings.Cut(text, "|")
	switch {
	case !ok || strings.HasPrefix(body, "undecodable"):
		return nil, "", es.Corrupt("no bar in it")
	case strings.HasPrefix(body, "unknown"):
		return nil, key, fmt.Errorf("%w: thing", es.ErrUnknownType)
	case strings.HasPrefix(body, "explode"):
		panic("decoder")
	}
	return text, key, nil
}

// running is a subscription that runs.
type running struct {
	stop  context.CancelFunc
	ended chan error
}

func start(t testing.TB, rdb redis.UniversalClient, c redisstream.Config, h func(ctx context.Context, text string) error) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel, make(chan error, 1)}
	go func() {
		r.ended <- redisstream.Subscribe(ctx, rdb, c, decode, func(ctx context.Context, m any) error { return h(ctx, m.(string)) })
	}()
	t.Cleanup(cancel)
	return r
}

// end stops it and says how long that took.
func (r *running) end(t testing.TB) time.Duration {
	t.Helper()
	began := time.Now()
	r.stop()
	select {
	case err := <-r.ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "it does not stop")
	}
	return time.Since(began)
}

func publish(t testing.TB, rdb redis.UniversalClient, topic string, texts ...string) {
	t.Helper()
	messages := make([][]byte, len(texts))
	for i, s := range texts {
		messages[i] = []byte(s)
	}
	require.NoError(t, redisstream.Publish(t.Context(), rdb, topic, messages...))
}

// numbered are n texts "<key>|<n>", the keys taking turns.
func numbered(n int, keys ...string) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("%s|%d", keys[i%len(keys)], i)
	}
	return texts
}

// eventually waits until f is true; unlike require's it calls f where it is itself.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	if !happens(patience, f) {
		require.Fail(t, "it never happens", what)
	}
}

// never looks for d whether f is true.
func never(t testing.TB, what string, d time.Duration, f func() bool) {
	t.Helper()
	if happens(d, f) {
		require.Fail(t, "it happens", what)
	}
}

func happens(within time.Duration, f func() bool) bool {
	every := time.NewTicker(tick)
	defer every.Stop()
	for end := time.Now().Add(within); time.Now().Before(end); <-every.C {
		if f() {
			return true
		}
	}
	return false
}

// pending is how many entries of group "g" are pending.
func pending(t testing.TB, rdb redis.UniversalClient, topic string) int64 {
	t.Helper()
	p, err := rdb.XPending(context.WithoutCancel(t.Context()), topic, "g").Result()
	if err != nil {
		return -1
	}
	return p.Count
}

// drained waits until group "g" has read and acknowledged all there is.
func drained(t testing.TB, rdb redis.UniversalClient, topic string) {
	t.Helper()
	eventually(t, "nothing is left in "+topic, func() bool {
		last, err := rdb.XRevRangeN(t.Context(), topic, "+", "-", 1).Result()
		if err != nil {
			return false
		}
		groups, err := rdb.XInfoGroups(t.Context(), topic).Result()
		if err != nil {
			return false
		}
		for _, g := range groups {
			if g.Name == "g" {
				return g.Pending == 0 && (len(last) == 0 || g.LastDeliveredID == last[0].ID)
			}
		}
		return false
	})
}

func pendingOf(t testing.TB, rdb redis.UniversalClient, topic string) []redis.XPendingExt {
	t.Helper()
	p, err := rdb.XPendingExt(t.Context(), &redis.XPendingExtArgs{Stream: topic, Group: "g", Start: "-", End: "+", Count: 10_000}).Result()
	require.NoError(t, err)
	return p
}

// letters are the dead letters of a topic, the newest first.
func letters(t testing.TB, rdb redis.UniversalClient, topic string) []recovery.Letter {
	t.Helper()
	var all []recovery.Letter
	for l, err := range recovery.NewDeadLetters(rdb).List(t.Context(), recovery.LetterFilter{Topics: []string{topic}}, recovery.Letter{}) {
		require.NoError(t, err)
		all = append(all, l)
	}
	return all
}

func group(t testing.TB, rdb redis.UniversalClient, topic string) {
	t.Helper()
	require.NoError(t, redisstream.Prepare(t.Context(), rdb, config(topic)))
}

// abandon lets a consumer that is dead read n entries.
func abandon(t testing.TB, rdb redis.UniversalClient, topic, consumer string, n int) []string {
	t.Helper()
	streams, err := rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{
		Group: "g", Consumer: consumer, Streams: []string{topic, ">"}, Count: int64(n), Block: -1,
	}).Result()
	require.NoError(t, err)
	require.NoError(t, rdb.ZAdd(t.Context(), "{"+topic+"}:lease:g", redis.Z{Member: consumer, Score: 1}).Err())
	var ids []string
	for _, m := range streams[0].Messages {
		ids = append(ids, m.ID)
	}
	require.Len(t, ids, n)
	return ids
}

// through is a client of a server of its own, by way of a proxy, and one that is not.
func through(t *testing.T) (p *redistest.Proxy, client, direct *redis.Client) {
	t.Helper()
	server := redistest.Standalone(t)
	p = redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr = p.Addr
	client = redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return p, client, server.Client(t)
}
