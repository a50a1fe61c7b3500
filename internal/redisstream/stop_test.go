package redisstream_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

func TestCONN01_AnIdleSubscriptionStopsWithinASecond(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topics := []string{freshTopic(), freshTopic()}
		r := start(t, rdb, config(topics...), func(context.Context, string) error { return nil })
		publish(t, rdb, topics[1], "a|1")
		drained(t, rdb, topics[1])
		require.Less(t, r.end(t), time.Second)
	})
}

func TestCONN01_NoGoroutineIsLeft(t *testing.T) { // alone: others' goroutines count
	rdb := redistest.Shared(t).Client(t)
	require.NoError(t, rdb.Ping(t.Context()).Err())
	before := runtime.NumGoroutine()
	for range 3 {
		topic := freshTopic()
		var failed atomic.Bool
		r := start(t, rdb, config(topic), func(_ context.Context, text string) error {
			if text == "a|1" && failed.CompareAndSwap(false, true) {
				return errFails
			}
			return nil
		})
		publish(t, rdb, topic, numbered(50, "a", "b", "c")...)
		drained(t, rdb, topic)
		r.end(t)
	}
	eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

func TestCONN04_WhatIsInHandAtAStopIsFinishedAndAcknowledged(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		c.Workers = 100
		var seen calls
		release := make(chan struct{})
		handle := func(ctx context.Context, text string) error {
			seen.add(text)
			<-release
			return ctx.Err()
		}
		keys := strings.Split(strings.Repeat("k", 100), "")
		for i := range keys {
			keys[i] = string(rune('a'+i%26)) + string(rune('a'+i/26))
		}
		r := start(t, rdb, c, handle)
		publish(t, rdb, topic, numbered(100, keys...)...)
		eventually(t, "all have begun", func() bool { return len(seen.all()) == 100 })
		r.stop()
		close(release)
		require.Less(t, r.end(t), time.Second)
		require.Zero(t, pending(t, rdb, topic))
		r = start(t, rdb, config(topic), handle)
		publish(t, rdb, topic, "z|last")
		drained(t, rdb, topic)
		require.Len(t, seen.all(), 101)
		r.end(t)
	})
}

func TestCONN15_WhatHasNotBegunAtAStopGoesToOthersAtOnceAndInOrder(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		c.Workers, c.Prefetch, c.Lease = 1, 100, time.Hour
		var first, second calls
		release := make(chan struct{})
		r := start(t, rdb, c, func(_ context.Context, text string) error {
			if first.add(text); len(first.all()) == 3 {
				<-release
			}
			return nil
		})
		texts := numbered(100, "a", "b")
		publish(t, rdb, topic, texts...)
		eventually(t, "the third has begun, all are held", func() bool { return len(first.all()) == 3 && pending(t, rdb, topic) == 98 })
		r.stop()
		never(t, "it ends before its handler", 200*time.Millisecond, func() bool { return len(r.ended) > 0 })
		close(release)
		require.Less(t, r.end(t), time.Second)
		for _, p := range pendingOf(t, rdb, topic) {
			require.Zero(t, p.RetryCount, "its delivery is taken back")
		}
		require.EqualValues(t, 97, pending(t, rdb, topic))
		c = config(topic)
		c.Lease, c.Workers = time.Hour, 1
		r = start(t, rdb, c, second.handle)
		drained(t, rdb, topic)
		r.end(t)
		all := append(first.all(), second.all()...)
		require.Len(t, all, 100)
		for _, key := range []string{"a", "b"} {
			var want []string
			for _, text := range texts {
				if strings.HasPrefix(text, key) {
					want = append(want, text)
				}
			}
			require.Equal(t, want, slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.HasPrefix(s, key) }))
		}
	})
}

func TestAHandlerThatIgnoresTheEndOfTheGraceKeepsNobody(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		c.Grace, c.Lease = 200*time.Millisecond, time.Hour
		release, returned := make(chan struct{}), make(chan struct{})
		var seen calls
		r := start(t, rdb, c, func(ctx context.Context, text string) error {
			if seen.add(text); text == "a|1" {
				<-release
				defer close(returned)
			}
			return nil
		})
		publish(t, rdb, topic, "a|1", "a|2", "b|1")
		eventually(t, "it has begun", func() bool { return seen.count("a|1")+seen.count("b|1") == 2 })
		eventually(t, "b is acknowledged", func() bool { return pending(t, rdb, topic) == 2 })
		took := r.end(t)
		require.Less(t, took, c.Grace+time.Second)
		require.GreaterOrEqual(t, took, c.Grace)
		var others calls
		r = start(t, rdb, config(topic), others.handle)
		drained(t, rdb, topic)
		require.Equal(t, []string{"a|1", "a|2"}, others.all())
		close(release)
		<-returned
		r.end(t)
	})
}

func TestAHandlersContextEndsWithTheGraceAndItsMessageGoesBack(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	c := config(topic)
	c.Grace, c.Lease = 100*time.Millisecond, time.Hour
	begun := make(chan struct{})
	r := start(t, rdb, c, func(ctx context.Context, _ string) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	publish(t, rdb, topic, "a|1")
	<-begun
	require.Less(t, r.end(t), c.Grace+time.Second)
	left := pendingOf(t, rdb, topic)
	require.Len(t, left, 1)
	require.Zero(t, left[0].RetryCount)
	require.Zero(t, rdb.Exists(t.Context(), "{"+topic+"}:failed:g").Val(), "no attempt is spent")
}

func TestAStopWaitsForNoServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	topic := freshTopic()
	c := config(topic)
	c.Grace = 500 * time.Millisecond
	r := start(t, rdb, c, func(context.Context, string) error { return nil })
	publish(t, rdb, topic, "a|1")
	drained(t, rdb, topic)
	server.Pause(t)
	require.Less(t, r.end(t), c.Grace+time.Second+200*time.Millisecond) // the machine is busy
	server.Resume(t)
}
