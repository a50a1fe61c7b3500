package redisstream_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
)

// lost are the ways in which a group gets lost.
var lost = map[string]func(ctx context.Context, rdb *redis.Client, topic string) error{
	"FLUSHALL": func(ctx context.Context, rdb *redis.Client, _ string) error { return rdb.FlushAll(ctx).Err() },
	"DEL":      func(ctx context.Context, rdb *redis.Client, topic string) error { return rdb.Del(ctx, topic).Err() },
	"XGROUP DESTROY": func(ctx context.Context, rdb *redis.Client, topic string) error {
		return rdb.XGroupDestroy(ctx, topic, "g").Err()
	},
	"DEL retry": func(ctx context.Context, rdb *redis.Client, topic string) error {
		return rdb.Del(ctx, "{"+topic+"}:retry:g").Err()
	},
	"SCRIPT FLUSH": func(ctx context.Context, rdb *redis.Client, _ string) error { return rdb.ScriptFlush(ctx).Err() },
}

func TestGRP01_GRP02_GRP03_ALostGroupHealsAndMissesNothing(t *testing.T) {
	t.Parallel()
	for how, lose := range lost {
		for _, begin := range []es.Start{es.FromBeginning, es.FromNow, ""} {
			t.Run(fmt.Sprintf("%s %q", how, begin), func(t *testing.T) {
				t.Parallel()
				server := redistest.Standalone(t)
				rdb := server.Client(t)
				topic := freshTopic()
				c := config(topic)
				var log lines
				c.Logger, c.Start = log.logger(), begin
				var seen calls
				require.NoError(t, redisstream.Prepare(t.Context(), rdb, c))
				r := start(t, rdb, c, seen.handle)
				if begin != es.FromNow { // nothing was read before the loss
					publish(t, rdb, topic, "a|before")
				}
				eventually(t, "it reads", func() bool { return rdb.ZCard(t.Context(), "{"+topic+"}:lease:g").Val() == 1 && blocked(t, rdb) })
				if begin != es.FromNow {
					drained(t, rdb, topic)
				}
				require.NoError(t, lose(t.Context(), rdb, topic))
				publish(t, rdb, topic, numbered(100, "a", "b", "c")...)
				eventually(t, "all are handled", func() bool { return seen.count("a|99")*seen.count("c|98")*seen.count("b|97") > 0 })
				drained(t, rdb, topic)
				for _, text := range numbered(100, "a", "b", "c") {
					require.Equal(t, 1, seen.count(text), text)
				}
				r.end(t)
				require.LessOrEqual(t, log.count("\n"), 6, log.String())
			})
		}
	}
}

func blocked(t testing.TB, rdb *redis.Client) bool {
	t.Helper()
	clients, err := rdb.Info(t.Context(), "clients").Result()
	require.NoError(t, err)
	return !strings.Contains(clients, "blocked_clients:0\r\n")
}

// What is held while its group is destroyed can still fail, and be tried again.
func TestGRP02_WhatIsHeldWhenItsGroupIsLostIsPendingAgain(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		c.Workers = 2
		var seen calls
		release := make(chan struct{})
		var failed atomic.Bool
		r := start(t, rdb, c, func(_ context.Context, text string) error {
			seen.add(text)
			if text == "a|2" {
				<-release
				if failed.CompareAndSwap(false, true) {
					return errFails
				}
			}
			return nil
		})
		publish(t, rdb, topic, "a|1", "a|2", "b|1")
		eventually(t, "a is held", func() bool { return seen.count("a|2") == 1 && pending(t, rdb, topic) == 1 })
		require.NoError(t, rdb.XGroupDestroy(t.Context(), topic, "g").Err())
		eventually(t, "it is pending again", func() bool { return pending(t, rdb, topic) >= 1 })
		close(release)
		drained(t, rdb, topic)
		require.Equal(t, 2, seen.count("a|2"))
		r.end(t)
	})
}

func TestGRP03_AStringInTheWayIsLoudAndHarmless(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	c := config(topic)
	var log lines
	c.Logger = log.logger()
	var seen calls
	r := start(t, rdb, c, seen.handle)
	publish(t, direct, topic, "a|1")
	drained(t, direct, topic)
	require.NoError(t, direct.Set(t.Context(), topic, "no stream", 0).Err())
	eventually(t, "it says so", func() bool {
		return log.count("reading failed") > 0 && log.count("WRONGTYPE")+log.count("no longer exists") > 0
	})
	reads := p.Count("XREADGROUP")
	never(t, "it reads in a loop", 1500*time.Millisecond, func() bool { return p.Count("XREADGROUP") > reads+10 })
	require.LessOrEqual(t, log.count("\n"), 8, log.String())
	require.NoError(t, direct.Del(t.Context(), topic).Err())
	publish(t, direct, topic, "a|2")
	eventually(t, "it goes on", func() bool { return seen.count("a|2") == 1 })
	r.end(t)
}

// A peer had messages in hand when the group was destroyed, and died: whoever makes the
// group anew begins before them.
func TestGRP02_WhatADeadPeerHeldWhenTheGroupWasLostIsHandled(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	group(t, direct, topic)
	publish(t, direct, topic, "a|acked", "b|held", "c|held")
	ids := abandon(t, direct, topic, "peer", 3)
	require.NoError(t, direct.XAck(t.Context(), topic, "g", ids[0]).Err())
	require.NoError(t, direct.ZAdd(t.Context(), "{"+topic+"}:lease:g", redis.Z{Member: "peer", Score: 4e12}).Err()) // it lives
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	publish(t, direct, topic, "d|1")
	eventually(t, "others go on", func() bool { return seen.count("d|1") == 1 })
	looks := func() int { return p.Count("EVALSHA " + lua.FindOwners.Hash()) }
	before := looks()
	eventually(t, "it has looked at both streams, twice", func() bool { return looks() > before+4 })
	require.NoError(t, direct.XGroupDestroy(t.Context(), topic, "g").Err())
	eventually(t, "all is handled", func() bool { return seen.count("b|held")*seen.count("c|held") > 0 })
	drained(t, direct, topic)
	require.Zero(t, seen.count("a|acked"), "it was acknowledged before all that was pending")
	r.end(t)
}
