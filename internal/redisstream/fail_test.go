package redisstream_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestDLQ01_PoisonEndsInTheDeadLettersAndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		c.Workers, c.MaxDeliveries, c.Backoff, c.MaxBackoff = 1, 4, 40*time.Millisecond, time.Second
		var seen calls
		r := start(t, rdb, c, func(_ context.Context, text string) error {
			if seen.add(text); text[0] == 'p' {
				return fmt.Errorf("%s: %w", text, errFails)
			}
			return nil
		})
		poison := numbered(4, "p1", "p2", "p3", "p4")
		publish(t, rdb, topic, append(poison, numbered(100, "a", "b", "c")...)...)
		drained(t, rdb, topic)
		r.end(t)
		require.Len(t, seen.all(), 100+4*4)
		all := letters(t, rdb, topic)
		require.Len(t, all, 4)
		for _, l := range all {
			require.Equal(t, recovery.Limit, l.Reason)
			require.Equal(t, 4, l.Attempts)
			text, _ := l.Fields.Get("msg")
			require.Equal(t, text+": it fails", l.Error)
			require.Equal(t, text[:2], l.Aggregate)
		}
		last := time.Time{}
		for i, text := range seen.all() {
			if text == poison[0] {
				if !last.IsZero() {
					require.GreaterOrEqual(t, seen.at[i].Sub(last), 20*time.Millisecond, "attempts are spaced")
				}
				last = seen.at[i]
			}
		}
		require.Zero(t, rdb.HLen(t.Context(), "{"+topic+"}:failed:g").Val())
	})
}

func TestLOST11_DLQ05_NoMessageEndsTheSubscription(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		var log lines
		c.MaxDeliveries, c.Logger = 2, log.logger()
		var seen calls
		r := start(t, rdb, c, func(_ context.Context, text string) error {
			switch seen.add(text); text {
			case "a|error":
				return errFails
			case "a|panic":
				panic("handler")
			case "a|permanent":
				return es.Permanent(errFails)
			}
			return nil
		})
		for _, values := range [][]string{
			{"msg", "a|good"}, {"foo", "bar"}, {"msg", ""}, {"msg", "a|1", "msg", "no secret"}, {"msg", "undecodable secret"}, {"msg", "a|unknown"},
			{"msg", "a|explode"}, {"msg", "a|error"}, {"msg", "a|panic"}, {"msg", "a|permanent"}, {"msg", "a|end", "more", "x"},
		} {
			require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: values}).Err())
		}
		drained(t, rdb, topic)
		require.Equal(t, 1, seen.count("a|good")*seen.count("a|end")*seen.count("a|permanent"))
		require.Equal(t, 2, seen.count("a|error"))
		require.Equal(t, 2, seen.count("a|panic"))
		reasons := map[recovery.Reason]int{}
		for _, l := range letters(t, rdb, topic) {
			reasons[l.Reason]++
		}
		require.Equal(t, map[recovery.Reason]int{recovery.Undecodable: 5, recovery.UnknownType: 1, recovery.Limit: 2, recovery.Permanent: 1}, reasons)
		require.NotContains(t, log.String(), "secret")
		publish(t, rdb, topic, "b|1")
		drained(t, rdb, topic)
		r.end(t)
	})
}

func TestRetryAfterChoosesTheDelay(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	c := config(topic)
	var seen calls
	r := start(t, rdb, c, func(_ context.Context, text string) error {
		if seen.add(text) == 1 {
			return es.RetryAfter(errFails, 400*time.Millisecond)
		}
		return nil
	})
	publish(t, rdb, topic, "a|1")
	drained(t, rdb, topic)
	r.end(t)
	require.Len(t, seen.all(), 2)
	require.GreaterOrEqual(t, seen.at[1].Sub(seen.at[0]), 400*time.Millisecond)
}

func TestFAIL06_TroubleOfAServerSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		c.MaxDeliveries = 2
		var seen calls
		var up atomic.Bool
		var attempt atomic.Int64
		r := start(t, rdb, c, func(ctx context.Context, text string) error {
			d, _ := es.DeliveryOf(ctx)
			attempt.Store(int64(d.Attempt))
			if n := seen.add(text); !up.Load() {
				return fmt.Errorf("store: %w", []error{es.ErrUnavailable, es.ErrUncertain, es.ErrOutOfMemory}[n%3])
			}
			return nil
		})
		publish(t, rdb, topic, "a|1")
		eventually(t, "it is tried on", func() bool { return seen.count("a|1") > 8 })
		require.Zero(t, rdb.Exists(t.Context(), "{"+topic+"}:failed:g").Val())
		up.Store(true)
		drained(t, rdb, topic)
		require.EqualValues(t, 1, attempt.Load())
		require.Empty(t, letters(t, rdb, topic))
		r.end(t)
	})
}

func TestAttemptsAreCountedAcrossConsumers(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		c.MaxDeliveries, c.Lease = 3, time.Hour
		failed := make(chan struct{}, 10)
		r := start(t, rdb, c, func(context.Context, string) error {
			failed <- struct{}{}
			return es.RetryAfter(errFails, time.Hour)
		})
		publish(t, rdb, topic, "a|1")
		<-failed
		eventually(t, "it is counted", func() bool { return rdb.HLen(t.Context(), "{"+topic+"}:failed:g").Val() == 1 })
		r.end(t)
		deliveries := make(chan es.Delivery, 10)
		c.Consumer += "x"
		r = start(t, rdb, c, func(ctx context.Context, _ string) error {
			d, _ := es.DeliveryOf(ctx)
			deliveries <- d
			return errFails
		})
		drained(t, rdb, topic)
		r.end(t)
		require.Len(t, deliveries, 2)
		d := <-deliveries
		require.Equal(t, 2, d.Attempt)
		require.True(t, d.Recovered)
		require.WithinDuration(t, time.Now(), d.Sent, time.Minute)
		require.Equal(t, 3, letters(t, rdb, topic)[0].Attempts)
	})
}

func TestWithoutDeadLettersAMessageStaysPending(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	c := config(topic)
	var log lines
	c.NoDeadLetters, c.MaxDeliveries, c.Logger, c.Lease = true, 2, log.logger(), 100*time.Millisecond
	var seen calls
	r := start(t, rdb, c, func(_ context.Context, text string) error {
		if seen.add(text); text == "a|1" {
			return errFails
		}
		return nil
	})
	publish(t, rdb, topic, "a|1", "a|2", "undecodable", "b|1")
	eventually(t, "the others are handled", func() bool { return pending(t, rdb, topic) == 2 && seen.count("a|2") == 1 })
	never(t, "it is tried again", 500*time.Millisecond, func() bool { return seen.count("a|1") > 2 })
	require.EqualValues(t, 2, pending(t, rdb, topic))
	require.Empty(t, letters(t, rdb, topic))
	require.Positive(t, log.count("cannot be handled"))
	r.end(t)
}
