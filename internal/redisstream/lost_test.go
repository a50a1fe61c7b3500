package redisstream_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
)

func TestLOST01_MessagesOfAReadWhoseReplyWasLostAreHandledWhileTheirOwnerLives(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	group(t, direct, topic)
	publish(t, direct, topic, numbered(4, "a", "b")...)
	c := config(topic)
	var seen calls
	p.DropReply("XREADGROUP")
	r := start(t, rdb, c, seen.handle)
	drained(t, direct, topic)
	require.Zero(t, p.Pending())
	require.Len(t, seen.all(), 4)
	p.SwallowReply("XREADGROUP")
	eventually(t, "a read hangs", func() bool { return p.Pending() == 0 })
	require.Less(t, r.end(t), c.Grace+time.Second+200*time.Millisecond)
}

func TestLOST04_LOST10_WhatADeadConsumerReadIsHandled(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		group(t, rdb, topic)
		publish(t, rdb, topic, numbered(10, "a", "b")...)
		abandon(t, rdb, topic, "dead", 10)
		c := config(topic)
		c.Consumer = "dead" // LOST-04: the same name again
		var seen calls
		r := start(t, rdb, c, seen.handle)
		drained(t, rdb, topic)
		r.end(t)
		require.Len(t, seen.all(), 10)
	})
}

// LOST-03: nobody deletes a consumer that holds messages; CHURN-05: many dead ones.
func TestLOST03_CHURN05_AllThatManyDeadConsumersLeftIsHandledAndNewMessagesToo(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		group(t, rdb, topic)
		publish(t, rdb, topic, numbered(500, "a", "b", "c", "d", "e")...)
		for i := range 20 {
			abandon(t, rdb, topic, "dead"+string(rune('a'+i)), 25)
		}
		var seen calls
		var all []*running
		for range 2 {
			all = append(all, start(t, rdb, config(topic), func(ctx context.Context, text string) error {
				d, _ := es.DeliveryOf(ctx)
				if d.Recovered != !strings.HasPrefix(text, "new|") {
					t.Errorf("%s: %+v", text, d)
				}
				seen.add(text)
				return nil
			}))
		}
		publish(t, rdb, topic, numbered(100, "new")...)
		drained(t, rdb, topic)
		for _, r := range all {
			r.end(t)
		}
		require.Len(t, seen.all(), 600)
	})
}

func TestLOST12_DEL01_DEL03_WhatWasDeletedIsReportedAndNoLetter(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		group(t, rdb, topic)
		publish(t, rdb, topic, "a|1", "a|2", "a|3")
		ids := abandon(t, rdb, topic, "dead", 3)
		require.NoError(t, rdb.XDel(t.Context(), topic, ids[:2]...).Err())
		c := config(topic)
		var log lines
		c.Logger = log.logger()
		var seen calls
		r := start(t, rdb, c, func(ctx context.Context, text string) error {
			if seen.add(text); text == "b|1" { // LOST-12: gone while it is handled
				last := rdb.XRevRangeN(ctx, topic, "+", "-", 1).Val()
				return rdb.XDel(ctx, topic, last[0].ID).Err()
			}
			return nil
		})
		publish(t, rdb, topic, "b|1")
		eventually(t, "nothing is pending", func() bool { return pending(t, rdb, topic) == 0 && len(seen.all()) == 2 })
		r.end(t)
		require.ElementsMatch(t, []string{"a|3", "b|1"}, seen.all())
		require.Empty(t, letters(t, rdb, topic))
		require.Equal(t, 1, log.count("no longer in the stream"))
		require.Positive(t, log.count(ids[0]))
	})
}
