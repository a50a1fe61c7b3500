package redisstream_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestDeleteAckedLeavesAnEmptyStream(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		c := config(topic)
		c.DeleteAcked, c.MaxDeliveries = true, 2
		var seen calls
		r := start(t, rdb, c, func(_ context.Context, text string) error {
			first := seen.add(text) == 1
			switch {
			case first && text == "a|0":
				return es.Permanent(errFails)
			case first && text == "b|1":
				return errFails
			}
			return nil
		})
		publish(t, rdb, topic, append(numbered(50, "a", "b"), "undecodable")...)
		eventually(t, "nothing is left", func() bool { return rdb.XLen(t.Context(), topic).Val() == 0 && pending(t, rdb, topic) == 0 })
		require.GreaterOrEqual(t, len(seen.all()), 51)
		var poison recovery.Letter
		for _, l := range letters(t, rdb, topic) {
			if l.Reason == recovery.Permanent {
				poison = l
			}
		}
		require.Equal(t, "a|0: it fails", poison.Fields[1]+": "+poison.Error, "a letter has its own copy")
		_, err := recovery.NewDeadLetters(rdb).Replay(t.Context(), topic, poison.ID)
		require.NoError(t, err)
		eventually(t, "what was replayed is gone too", func() bool {
			return seen.count("a|0") == 2 && rdb.XLen(t.Context(), rediskey.Retry(topic, "g")).Val() == 0
		})
		r.end(t)
	})
}

// Another group has yet to read, and to acknowledge: only then may a message go.
func TestDeleteAckedWaitsForEveryGroup(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) { deleteWithTwoGroups(t, rdb) })
}

// Redis 8.2 without its XACKDEL: what an older server does, or a cluster of both.
func TestDeleteAckedWithoutXACKDEL(t *testing.T) {
	t.Parallel()
	if !redistest.Shared(t).Knows(t, "XACKDEL") {
		t.Skip("this server has no XACKDEL: the other tests go without")
	}
	deleteWithTwoGroups(t, redistest.Standalone(t, `rename-command XACKDEL ""`).Client(t))
}

func deleteWithTwoGroups(t *testing.T, rdb redis.UniversalClient) {
	topic := freshTopic()
	require.NoError(t, rdb.XGroupCreateMkStream(t.Context(), topic, "other", "0").Err())
	c := config(topic)
	c.DeleteAcked = true
	var seen calls
	r := start(t, rdb, c, seen.handle)
	publish(t, rdb, topic, numbered(20, "a", "b")...)
	drained(t, rdb, topic)
	r.end(t)
	require.EqualValues(t, 20, rdb.XLen(t.Context(), topic).Val(), "the other group has read none")

	other := c
	other.Group, other.Consumer = "other", "o"
	held := make(chan struct{})
	var theirs calls
	r = start(t, rdb, other, func(ctx context.Context, text string) error {
		if theirs.add(text); text == "a|0" {
			<-held
		}
		return ctx.Err()
	})
	eventually(t, "what both have acknowledged is gone", func() bool { return rdb.XLen(t.Context(), topic).Val() == 10 })
	never(t, "more goes", 100*time.Millisecond, func() bool { return rdb.XLen(t.Context(), topic).Val() < 10 })
	close(held)
	eventually(t, "and now the rest", func() bool { return rdb.XLen(t.Context(), topic).Val() == 0 })
	r.end(t)
	require.Len(t, theirs.all(), 20)
}

func TestDeleteAckedIsOneCommandWhereTheServerHasIt(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	deleteWithTwoGroups(t, rdb)
	used := strings.Contains(rdb.Info(t.Context(), "commandstats").Val(), "cmdstat_xackdel")
	require.Equal(t, server.Knows(t, "XACKDEL"), used)
}

// An acknowledgement whose reply was lost deletes all the same, and one that came too
// late deletes nothing.
func TestDeleteAckedDeletesOnlyWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		group(t, rdb, topic)
		publish(t, rdb, topic, "a|1", "a|2", "a|3")
		ids := abandon(t, rdb, topic, "late", 2)
		require.NoError(t, rdb.XClaimJustID(t.Context(), &redis.XClaimArgs{Stream: topic, Group: "g", Consumer: "other", Messages: ids[:1]}).Err())
		require.NoError(t, rdb.XAck(t.Context(), topic, "g", ids[1]).Err()) // a call whose reply was lost, without the deletion
		g := recovery.NewGroup(rdb, topic, "g", "late")
		g.DeleteAcked = true
		unread := rdb.XRevRangeN(t.Context(), topic, "+", "-", 1).Val()[0].ID
		lost, err := g.Ack(t.Context(), topic, append(ids, unread))
		require.NoError(t, err)
		require.Equal(t, ids[:1], lost)
		left := rdb.XRange(t.Context(), topic, "-", "+").Val()
		require.Len(t, left, 2)
		require.Equal(t, []string{ids[0], unread}, []string{left[0].ID, left[1].ID})
	})
}
