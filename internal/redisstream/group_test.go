package redisstream_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
)

func TestGRP05_WhereANewGroupBegins(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for begin, want := range map[es.Start][]string{
			es.FromBeginning: {"a|1", "a|2", "a|3"}, es.FromNow: {"a|3"},
		} {
			topic := freshTopic()
			publish(t, rdb, topic, "a|1", "a|2")
			c := config(topic)
			c.Start = begin
			require.NoError(t, redisstream.Prepare(t.Context(), rdb, c))
			publish(t, rdb, topic, "a|3")
			var seen calls
			r := start(t, rdb, c, seen.handle)
			drained(t, rdb, topic)
			require.Equal(t, want, seen.all())
			r.end(t)
		}
		topic := freshTopic()
		publish(t, rdb, topic, "a|1")
		first := rdb.XRange(t.Context(), topic, "-", "+").Val()[0].ID
		publish(t, rdb, topic, "a|2")
		c := config(topic)
		c.Start = es.Start(first)
		var seen calls
		r := start(t, rdb, c, seen.handle)
		drained(t, rdb, topic)
		require.Equal(t, []string{"a|2"}, seen.all())
		r.end(t)
	})
}

func TestANewGroupOnAStreamWithEntriesMustSayWhereItBegins(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		c.Start = ""
		publish(t, rdb, topic, "a|1")
		err := redisstream.Subscribe(t.Context(), rdb, c, decode, nil)
		require.ErrorIs(t, err, es.ErrStartRequired)
		require.ErrorContains(t, err, "FromBeginning")
		require.ErrorContains(t, err, "FromNow")
		group(t, rdb, topic)
		require.NoError(t, redisstream.Prepare(t.Context(), rdb, c), "it exists by now")
		c.Topics = []string{freshTopic()}
		require.NoError(t, redisstream.Prepare(t.Context(), rdb, c), "there is but one place")
	})
}

func TestGRP06_AnExistingGroupKeepsItsPlaceAndIdlesQuietly(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	publish(t, direct, topic, "a|1", "a|2")
	drained(t, direct, topic)
	r.end(t)
	r = start(t, rdb, config(topic), seen.handle)
	publish(t, direct, topic, "a|3")
	drained(t, direct, topic)
	reads := p.Count("XREADGROUP")
	never(t, "it reads in a loop", 2*time.Second, func() bool { return p.Count("XREADGROUP") > reads+4 })
	r.end(t)
	require.Equal(t, []string{"a|1", "a|2", "a|3"}, seen.all())
}

func TestGRP04_ManyBeginAtOnceBeforeAnythingIsPublished(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		var seen calls
		var all []*running
		for range 20 {
			c := config(topic)
			c.Workers, c.Sweep, c.Lease = 1, time.Second, time.Minute // the machine is busy
			all = append(all, start(t, rdb, c, seen.handle))
		}
		publish(t, rdb, topic, numbered(100, "a", "b", "c")...)
		eventually(t, "all are handled", func() bool { return len(seen.all()) == 100 })
		drained(t, rdb, topic)
		var ends sync.WaitGroup
		for _, r := range all {
			ends.Go(func() { r.end(t) })
		}
		ends.Wait()
		require.Len(t, seen.all(), 100)
	})
}

func TestGRP08_FAIL04_AStartWaitsForMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	topic := freshTopic()
	c := config(topic)
	var log lines
	c.Logger = log.logger()
	var seen calls
	r := start(t, rdb, c, seen.handle)
	eventually(t, "it says why it waits", func() bool { return log.count("OOM") > 0 })
	require.Empty(t, r.ended)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	publish(t, rdb, topic, "a|1")
	drained(t, rdb, topic)
	require.Equal(t, []string{"a|1"}, seen.all())
	r.end(t)
}

func TestABroadcastReachesEverySubscriberAndItsGroupEndsWithIt(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		publish(t, rdb, topic, "a|before")
		var seen [2]calls
		var all []*running
		for i := range seen {
			s := config(topic).Subscription
			s.Broadcast, s.Aggregates = true, []es.AggregateType{{}}
			c := redisstream.NewConfig(s, fmt.Sprint("c", i), func(es.AggregateType) string { return topic })
			require.NoError(t, redisstream.Prepare(t.Context(), rdb, c))
			all = append(all, start(t, rdb, c, seen[i].handle))
		}
		groups := rdb.XInfoGroups(t.Context(), topic).Val()
		require.Len(t, groups, 2)
		publish(t, rdb, topic, "a|1", "b|1")
		eventually(t, "all get all", func() bool { return len(seen[0].all()) == 2 && len(seen[1].all()) == 2 })
		for i, r := range all {
			eventually(t, "it is acknowledged", func() bool { return rdb.XPending(t.Context(), topic, groups[i].Name).Val().Count == 0 })
			r.end(t)
			require.Len(t, rdb.XInfoGroups(t.Context(), topic).Val(), len(all)-1-i)
		}
		for _, g := range groups {
			require.Zero(t, rdb.Exists(t.Context(), "{"+topic+"}:retry:"+g.Name, "{"+topic+"}:lease:"+g.Name).Val())
		}
	})
}

func TestDLQ10_ConfigRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for what, spoil := range map[string]func(c *redisstream.Config){
		"group": func(c *redisstream.Config) { c.Group = " " }, "consumer": func(c *redisstream.Config) { c.Consumer = "" },
		"no topics": func(c *redisstream.Config) { c.Topics = nil }, "brace": func(c *redisstream.Config) { c.Topics = []string{"{a}"} },
		"twice": func(c *redisstream.Config) { c.Topics = []string{"a", "a"} }, "workers": func(c *redisstream.Config) { c.Workers = -1 },
		"prefetch": func(c *redisstream.Config) { c.Prefetch = -1 }, "prefetch is": func(c *redisstream.Config) { c.PrefetchBytes = -1 }, "deliveries": func(c *redisstream.Config) { c.MaxDeliveries = -1 },
		"backoff": func(c *redisstream.Config) { c.Backoff = time.Hour }, "lease": func(c *redisstream.Config) { c.Lease = time.Nanosecond },
		"start": func(c *redisstream.Config) { c.Start = "yesterday" }, `start "1-"`: func(c *redisstream.Config) { c.Start = "1-" },
		"sweep": func(c *redisstream.Config) { c.Sweep = -1 }, "grace": func(c *redisstream.Config) { c.Grace = -1 },
	} {
		c := config(freshTopic())
		spoil(&c)
		err := redisstream.Subscribe(t.Context(), rdb, c, decode, nil)
		require.ErrorIs(t, err, es.ErrInvalid, what)
		require.ErrorContains(t, err, what)
	}
}

// cancelAfter ends a context as soon as a command was answered.
type cancelAfter struct {
	command string
	cancel  context.CancelFunc
}

func (h cancelAfter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h cancelAfter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h cancelAfter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == h.command {
			h.cancel()
		}
		return err
	}
}

// What could never begin says so, also where it is told to end at that moment.
func TestASubscriptionThatCannotBeginSaysSoAtItsEndToo(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	publish(t, rdb, topic, "a|1")
	c := config(topic)
	c.Start = ""
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rdb.AddHook(cancelAfter{command: "xlen", cancel: cancel})
	require.ErrorIs(t, redisstream.Subscribe(ctx, rdb, c, decode, nil), es.ErrStartRequired)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.NoError(t, redisstream.Subscribe(ctx, rdb, c, decode, nil), "it was to end before it had begun")
}
