package recovery_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// alive is a consumer of group "g" whose deadline is far.
func alive(t testing.TB, rdb redis.UniversalClient, topic, name string) *recovery.Group {
	t.Helper()
	g := recovery.NewGroup(rdb, topic, "g", name)
	g.Lease = time.Hour
	require.NoError(t, g.Renew(t.Context()))
	return g
}

// settled is one that is not new any more, so that it claims from who fell silent, and
// whose own entries count as forgotten after a moment. It must not be renewed.
func settled(t testing.TB, rdb redis.UniversalClient, topic, name string) *recovery.Group {
	t.Helper()
	g := recovery.NewGroup(rdb, topic, "g", name)
	g.Lease = time.Millisecond
	require.NoError(t, g.Renew(t.Context()))
	began := time.Now()
	lease(t, rdb, topic, "g", name, time.Hour)
	require.Eventually(t, func() bool { return time.Since(began) > 2*g.Lease }, patience, time.Millisecond)
	return g
}

// falls silent: its deadline has passed.
func silence(t testing.TB, rdb redis.UniversalClient, topic string, names ...string) {
	t.Helper()
	for _, name := range names {
		lease(t, rdb, topic, "g", name, -time.Second)
	}
}

func none(string) bool { return false }
func all(string) bool  { return true }

// sweep is one sweep of the topic by a consumer that holds all of its own.
func sweep(t testing.TB, g *recovery.Group, stream string, limit int) ([]recovery.Entry, recovery.Swept) {
	t.Helper()
	return sweepHolding(t, g, stream, limit, all)
}

func sweepHolding(t testing.TB, g *recovery.Group, stream string, limit int, held func(string) bool) ([]recovery.Entry, recovery.Swept) {
	t.Helper()
	var taken []recovery.Entry
	swept, err := g.Sweep(t.Context(), stream, limit, held, func(entries []recovery.Entry) { taken = append(taken, entries...) })
	require.NoError(t, err)
	require.Len(t, taken, swept.Claimed+swept.Found)
	return taken, swept
}

func entryIDs(entries []recovery.Entry) []string {
	ids := []string{}
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// pendingOf are the pending entries of group "g", of one consumer where it is named.
func pendingOf(t testing.TB, rdb redis.UniversalClient, stream, consumer string) []redis.XPendingExt {
	t.Helper()
	pending, err := rdb.XPendingExt(t.Context(), &redis.XPendingExtArgs{
		Stream: stream, Group: "g", Start: "-", End: "+", Count: 1_000_000, Consumer: consumer,
	}).Result()
	require.NoError(t, err)
	return pending
}

func pendingIDs(t testing.TB, rdb redis.UniversalClient, stream, consumer string) []string {
	t.Helper()
	ids := []string{}
	for _, p := range pendingOf(t, rdb, stream, consumer) {
		ids = append(ids, p.ID)
	}
	return ids
}

// age makes entries of a consumer as idle as d.
func age(t testing.TB, rdb redis.UniversalClient, stream, consumer string, d time.Duration, ids ...string) {
	t.Helper()
	for i := 0; i < len(ids); i += 1000 {
		args := []any{"XCLAIM", stream, "g", consumer, 0}
		for _, id := range ids[i:min(len(ids), i+1000)] {
			args = append(args, id)
		}
		require.NoError(t, rdb.Do(t.Context(), append(args, "IDLE", d.Milliseconds(), "JUSTID")...).Err())
	}
}

// abandon is a topic whose n entries were read by a consumer that fell silent.
func abandon(t testing.TB, rdb redis.UniversalClient, consumer string, n int) (topic string, ids []string) {
	t.Helper()
	topic = freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	publish(t, rdb, topic, n)
	ids = readAs(t, rdb, topic, "g", consumer, n)
	silence(t, rdb, topic, consumer)
	return topic, ids
}

func buried(t testing.TB, rdb redis.UniversalClient, topic string) []recovery.Letter {
	t.Helper()
	var letters []recovery.Letter
	for l, err := range recovery.NewDeadLetters(rdb).List(t.Context(), recovery.LetterFilter{Topics: []string{topic}}, recovery.Letter{}) {
		require.NoError(t, err)
		letters = append(letters, l)
	}
	return letters
}

func failuresOf(t testing.TB, rdb redis.UniversalClient, topic string) map[string]string {
	t.Helper()
	failures, err := rdb.HGetAll(t.Context(), rediskey.Failed(topic, "g")).Result()
	require.NoError(t, err)
	return failures
}

// through is a client of a server of its own, by way of a proxy.
func through(t *testing.T) (*redistest.Proxy, *redis.Client) {
	t.Helper()
	server := redistest.Standalone(t)
	p := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr = p.Addr
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return p, c
}

// recorder sees every command of a client before it is sent.
type recorder struct {
	mu   sync.Mutex
	sent [][]any
	// before, where set, is called with the name of each command that is sent by itself,
	// and of the first one of a pipeline.
	before func(name string)
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.see(cmd.Name(), cmd)
		return next(ctx, cmd)
	}
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.see(cmds[0].Name(), cmds...)
		return next(ctx, cmds)
	}
}

func (r *recorder) see(name string, cmds ...redis.Cmder) {
	r.mu.Lock()
	for _, cmd := range cmds {
		r.sent = append(r.sent, cmd.Args())
	}
	r.mu.Unlock()
	if r.before != nil {
		r.before(name)
	}
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
}

// count is how often commands of these names were sent.
func (r *recorder) count(names ...string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, args := range r.sent {
		for _, name := range names {
			if first, _ := args[0].(string); strings.EqualFold(first, name) {
				n++
			}
		}
	}
	return n
}
