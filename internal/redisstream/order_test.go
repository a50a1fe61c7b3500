package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
)

var errFails = errors.New("it fails")

func TestMessagesOfAKeyWaitBehindOneThatIsRetriedAndOthersGoOn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		var seen calls
		var mended atomic.Bool
		c := config(topic)
		c.MaxDeliveries = 1_000_000
		r := start(t, rdb, c, func(_ context.Context, text string) error {
			seen.add(text)
			if text == "a|0" && !mended.Load() {
				return errFails
			}
			return nil
		})
		publish(t, rdb, topic, "a|0", "a|1", "b|0", "a|2", "b|1")
		eventually(t, "a is retried, b goes on", func() bool { return seen.count("a|0") > 3 && len(seen.of("b")) == 2 })
		require.Zero(t, seen.count("a|1")+seen.count("a|2"))
		mended.Store(true)
		drained(t, rdb, topic)
		require.Equal(t, []string{"b|0", "b|1"}, seen.of("b"))
		a := seen.of("a")
		require.Equal(t, []string{"a|0", "a|1", "a|2"}, a[len(a)-3:])
		r.end(t)
	})
}

// Parked messages take no room of the prefetch, and are bounded themselves.
func TestParkedMessagesAreBounded(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	c := config(topic)
	c.Workers, c.Prefetch = 1, 4
	var seen calls
	var mended atomic.Bool
	r := start(t, rdb, c, func(_ context.Context, text string) error {
		if seen.add(text); mended.Load() {
			return nil
		}
		return es.RetryAfter(fmt.Errorf("%w: for now", es.ErrUnavailable), 50*time.Millisecond)
	})
	publish(t, rdb, topic, numbered(200, "a", "b", "c", "d", "e", "f", "g")...)
	eventually(t, "more than the prefetch is held", func() bool { return pending(t, rdb, topic) >= 32 })
	never(t, "too much is held", 300*time.Millisecond, func() bool { return pending(t, rdb, topic) > 32+4 })
	mended.Store(true)
	drained(t, rdb, topic)
	eventually(t, "all are handled", func() bool { return seen.count("d|199") > 0 && seen.count("c|198") > 0 })
	r.end(t)
}

func TestThePrefetchIsNeverExceeded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		names := []string{freshTopic(), freshTopic(), freshTopic()}
		c := config(names...)
		c.Workers, c.Prefetch = 2, 6
		release := make(chan struct{})
		var begun atomic.Int64
		for _, n := range names {
			group(t, rdb, n)
			publish(t, rdb, n, numbered(60, "a", "b", "c", "d")...)
			abandon(t, rdb, n, "dead", 10)
		}
		r := start(t, rdb, c, func(context.Context, string) error {
			begun.Add(1)
			<-release
			return nil
		})
		held := func() (n int) {
			for _, topic := range names {
				for _, p := range pendingOf(t, rdb, topic) {
					if p.Consumer == c.Consumer {
						n++
					}
				}
			}
			return n
		}
		eventually(t, "workers are busy", func() bool { return begun.Load() == 2 && held() == 6 })
		never(t, "too much is held", time.Second, func() bool { return held() > 6 })
		close(release)
		for _, n := range names {
			drained(t, rdb, n)
		}
		r.end(t)
		require.EqualValues(t, 180, begun.Load())
	})
}

// One read brings many messages, and one script acknowledges many.
func TestReadsAndAcksAreBatches(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	group(t, direct, topic)
	publish(t, direct, topic, numbered(2000, "a", "b", "c", "d", "e", "f", "g")...)
	c := config(topic)
	c.Workers, c.Prefetch, c.Sweep = 16, 200, time.Hour
	var n atomic.Int64
	p.Delay(2 * time.Millisecond)
	r := start(t, rdb, c, func(context.Context, string) error { n.Add(1); return nil })
	drained(t, direct, topic)
	require.EqualValues(t, 2000, n.Load())
	require.Less(t, p.Count("XREADGROUP"), 400)
	require.Less(t, p.Count("EVALSHA"), 600, "acknowledgements")
	p.Delay(0)
	r.end(t)
}

// EVO-08: what is recovered goes before what came after it and has not begun.
func TestEVO08_RecoveredMessagesGoBeforeLaterOnesOfTheirKey(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		group(t, rdb, topic)
		publish(t, rdb, topic, "a|1", "a|2", "a|3", "b|1")
		abandon(t, rdb, topic, "dead", 3)
		publish(t, rdb, topic, "a|4", "a|5", "a|6")
		c := config(topic)
		c.Workers, c.Prefetch = 1, 20
		var seen calls
		release := make(chan struct{})
		r := start(t, rdb, c, func(_ context.Context, text string) error {
			if seen.add(text); text == "b|1" {
				<-release
			}
			return nil
		})
		eventually(t, "all is held", func() bool {
			for _, p := range pendingOf(t, rdb, topic) {
				if p.Consumer != c.Consumer {
					return false
				}
			}
			return pending(t, rdb, topic) == 7
		})
		never(t, "another has begun", 200*time.Millisecond, func() bool { return len(seen.all()) > 1 })
		close(release)
		drained(t, rdb, topic)
		require.Equal(t, []string{"a|1", "a|2", "a|3", "a|4", "a|5", "a|6"}, seen.of("a"))
		r.end(t)
	})
}

func TestEVO08_OneConsumerKeepsTheOrderOfEachKey(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		var seen calls
		r := start(t, rdb, c, func(_ context.Context, text string) error {
			if n := seen.add(text); n == 1 && len(text)%2 == 0 {
				return errFails
			}
			return nil
		})
		texts := numbered(400, "a", "b", "c")
		publish(t, rdb, topic, texts...)
		drained(t, rdb, topic)
		r.end(t)
		for _, key := range []string{"a", "b", "c"} {
			last := -1
			for _, s := range seen.of(key) {
				var n int
				_, err := fmt.Sscanf(s[2:], "%d", &n)
				require.NoError(t, err)
				require.GreaterOrEqual(t, n, last)
				last = n
			}
		}
	})
}
