package redisstream_test

import (
	"context"
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

func TestDLQ02_AMessageThatKillsItsHandlersIsBuriedBeforeItKillsAnother(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		group(t, rdb, topic)
		publish(t, rdb, topic, "a|killer", "b|innocent")
		ids := abandon(t, rdb, topic, "dead", 2)
		c := config(topic)
		c.MaxDeliveries = 2 // crashes: 6
		require.NoError(t, rdb.Do(t.Context(), "XCLAIM", topic, "g", "dead", 0, ids[0], "RETRYCOUNT", 6, "JUSTID").Err())
		var seen calls
		r := start(t, rdb, c, seen.handle)
		drained(t, rdb, topic)
		r.end(t)
		require.Equal(t, []string{"b|innocent"}, seen.all())
		all := letters(t, rdb, topic)
		require.Len(t, all, 1)
		require.Equal(t, recovery.Crashed, all[0].Reason)
	})
}

func TestDLQ04_WithoutMemoryForALetterNothingIsLostAndNothingTriedAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	topic := freshTopic()
	c := config(topic)
	c.MaxDeliveries = 1
	var seen calls
	r := start(t, rdb, c, func(ctx context.Context, text string) error {
		seen.add(text)
		if text[0] == 'a' {
			require.NoError(t, rdb.ConfigSet(ctx, "maxmemory", "1").Err())
			return es.Permanent(errFails)
		}
		return nil
	})
	publish(t, rdb, topic, "a|1", "b|1", "b|undecodable")
	eventually(t, "b is handled", func() bool { return seen.count("a|1")*seen.count("b|1") == 1 })
	never(t, "it is acknowledged", 300*time.Millisecond, func() bool { return pending(t, rdb, topic) < 1 })
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	drained(t, rdb, topic)
	require.Len(t, letters(t, rdb, topic), 2)
	require.Equal(t, 1, seen.count("a|1"))
	r.end(t)
}

func TestDLQ03_ALetterWhoseReplyWasLostIsWrittenOnce(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	r := start(t, rdb, config(topic), func(context.Context, string) error {
		for range 3 { // whatever the client sends again
			p.DropReply("EVALSHA")
		}
		return es.Permanent(errFails)
	})
	publish(t, direct, topic, "a|1")
	drained(t, direct, topic)
	eventually(t, "replies were lost", func() bool { return p.Pending() == 0 })
	r.end(t)
	require.Len(t, letters(t, direct, topic), 1)
}

// Whoever counted the last failure died before the letter was written.
func TestDLQ01_AMessageThatFailedAsOftenAsItMayIsBuriedWithoutACall(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		group(t, rdb, topic)
		publish(t, rdb, topic, "a|failed twice", "a|failed once")
		ids := abandon(t, rdb, topic, "dead", 2)
		dead := recovery.NewGroup(rdb, topic, "g", "dead")
		for _, id := range []string{ids[0], ids[0], ids[1]} {
			_, _, err := dead.Fail(t.Context(), topic, id, errFails)
			require.NoError(t, err)
		}
		c := config(topic)
		c.MaxDeliveries = 2
		var seen calls
		r := start(t, rdb, c, seen.handle)
		drained(t, rdb, topic)
		r.end(t)
		require.Equal(t, []string{"a|failed once"}, seen.all())
		all := letters(t, rdb, topic)
		require.Len(t, all, 1)
		require.Equal(t, recovery.Limit, all[0].Reason)
		require.Equal(t, 2, all[0].Attempts)
		require.Contains(t, all[0].Error, errFails.Error())
	})
}

func TestAttemptsAreTheCallsAlsoWhereTheCountingFails(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	topic := freshTopic()
	c := config(topic)
	c.MaxDeliveries = 3
	var attempts atomic.Int64
	var wrong atomic.Bool
	r := start(t, rdb, c, func(ctx context.Context, _ string) error {
		d, _ := es.DeliveryOf(ctx)
		n := attempts.Add(1)
		wrong.Store(wrong.Load() || d.Attempt != int(n))
		memory := map[bool]string{true: "1", false: "0"}[n < 5] // nothing can be counted before
		require.NoError(t, rdb.ConfigSet(ctx, "maxmemory", memory).Err())
		if n < 6 {
			return errFails
		}
		return nil
	})
	publish(t, rdb, topic, "a|1")
	drained(t, rdb, topic)
	r.end(t)
	require.False(t, wrong.Load(), "each call has the next number")
	require.EqualValues(t, 6, attempts.Load(), "what could not be counted spends none")
	require.Empty(t, letters(t, rdb, topic))
}

// What stays pending is remembered, so that it is not found again and again, but not
// without limit.
func TestWithoutDeadLettersALimitedNumberIsRemembered(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for n, again := range map[int]bool{500: false, redisstream.MaxKept + 50: true} {
		topic := freshTopic()
		c := config(topic)
		c.NoDeadLetters = true
		var decoded atomic.Int64
		refuse := func([]byte) (any, string, error) { decoded.Add(1); return nil, "", es.Corrupt("it is none") }
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- redisstream.Subscribe(ctx, rdb, c, refuse, nil) }()
		publish(t, rdb, topic, numbered(n, "a")...)
		eventually(t, "all are read", func() bool { return int(decoded.Load()) >= n })
		if again {
			eventually(t, "forgotten ones are found", func() bool { return int(decoded.Load()) > n })
		} else {
			never(t, "one is found again", 3*c.Lease, func() bool { return int(decoded.Load()) > n })
		}
		require.EqualValues(t, n, pending(t, rdb, topic))
		stop()
		require.NoError(t, <-ended)
	}
}
