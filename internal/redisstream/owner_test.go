package redisstream_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
)

func TestDUP02_DUP03_DUP08_DLQ06_SlowHandlersKeepTheirMessages(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		var seen calls
		release := make(chan struct{})
		handle := func(_ context.Context, text string) error {
			if seen.add(text); text[0] == 's' {
				<-release
			}
			return nil
		}
		var all []*running
		for range 3 {
			c := config(topic)
			c.Workers, c.Prefetch, c.Lease = 3, 4, time.Second
			all = append(all, start(t, rdb, c, handle))
		}
		publish(t, rdb, topic, append(numbered(8, "s1", "s2"), numbered(40, "a", "b")...)...)
		eventually(t, "the slow ones have begun", func() bool { return seen.count("s1|0")+seen.count("s2|1") >= 2 })
		never(t, "two handle one", 2*time.Second, func() bool {
			for _, p := range pendingOf(t, rdb, topic) {
				if p.RetryCount > 1 {
					return true
				}
			}
			return false
		})
		close(release)
		drained(t, rdb, topic)
		for _, r := range all {
			r.end(t)
		}
		for _, text := range append(numbered(8, "s1", "s2"), numbered(40, "a", "b")...) {
			require.Equal(t, 1, seen.count(text), text)
		}
	})
}

// All that a saturated consumer has room for is busy: it must renew all the same.
func TestDUP02_ASaturatedConsumerRenewsItsLease(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	c := config(topic)
	c.Workers, c.Prefetch = 1, 2
	release := make(chan struct{})
	var n atomic.Int64
	r := start(t, rdb, c, func(context.Context, string) error { n.Add(1); <-release; return nil })
	publish(t, rdb, topic, numbered(20, "a")...)
	eventually(t, "it is saturated", func() bool { return n.Load() == 1 })
	never(t, "its lease runs out", 1500*time.Millisecond, func() bool {
		return int64(rdb.ZScore(t.Context(), "{"+topic+"}:lease:g", c.Consumer).Val()) < rdb.Time(t.Context()).Val().UnixMilli()
	})
	close(release)
	drained(t, rdb, topic)
	r.end(t)
}

func TestDUP04_DUP07_APausedConsumersLateAckAndLetterAreRefused(t *testing.T) {
	t.Parallel()
	p, slow, direct := through(t)
	topic := freshTopic()
	c := config(topic)
	var log lines
	c.Logger = log.logger()
	release := make(chan struct{})
	var seen calls
	stale := start(t, slow, c, func(_ context.Context, text string) error {
		seen.add(text)
		<-release
		if text == "a|1" {
			return nil
		}
		return es.Permanent(errFails)
	})
	publish(t, direct, topic, "a|1", "b|1")
	eventually(t, "both have begun", func() bool { return len(seen.all()) == 2 })
	p.Cut() // as good as stopped: it renews nothing, and its handlers go on after it
	var others calls
	hold := make(chan struct{})
	r := start(t, direct, config(topic), func(_ context.Context, text string) error {
		others.add(text)
		<-hold
		return nil
	})
	eventually(t, "another takes over", func() bool { return len(others.all()) == 2 })
	p.Heal()
	close(release)
	eventually(t, "the late ones are refused", func() bool { return log.count("had gone to another consumer") > 0 })
	require.EqualValues(t, 2, pending(t, direct, topic))
	close(hold)
	drained(t, direct, topic)
	require.Empty(t, letters(t, direct, topic))
	require.Len(t, others.all(), 2)
	r.end(t)
	stale.end(t)
}

// DUP-13: a group whose place is older than what was acknowledged delivers it again,
// under the same id.
func TestDUP13_AGroupSetBackDeliversTheSameIDs(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		ids := make(chan string, 10)
		r := start(t, rdb, config(topic), func(ctx context.Context, _ string) error {
			d, _ := es.DeliveryOf(ctx)
			ids <- d.ID
			return nil
		})
		publish(t, rdb, topic, "a|1", "a|2")
		drained(t, rdb, topic)
		require.NoError(t, rdb.Do(t.Context(), "XGROUP", "SETID", topic, "g", "0").Err())
		publish(t, rdb, topic, "a|3") // wakes the reader
		drained(t, rdb, topic)
		r.end(t)
		require.Len(t, ids, 5)
		first, second := <-ids, <-ids
		require.Equal(t, []string{first, second}, []string{<-ids, <-ids})
	})
}

func TestAnAckWhoseReplyWasLostIsSentAgain(t *testing.T) {
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
	for range 5 { // the client itself tries four times
		p.DropReply("EVALSHA " + lua.AckEntries.Hash())
	}
	publish(t, direct, topic, "a|2")
	eventually(t, "replies were lost", func() bool { return p.Pending() == 0 })
	publish(t, direct, topic, "a|3")
	drained(t, direct, topic)
	require.Equal(t, []string{"a|1", "a|2", "a|3"}, seen.all())
	require.Zero(t, log.count("another consumer"), log.String())
	r.end(t)
}
