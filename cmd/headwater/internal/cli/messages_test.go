package cli_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/recovery"
)

// send adds entries with ids of long ago.
func send(t *testing.T, rdb redis.UniversalClient, topic string, n int) {
	t.Helper()
	require.NoError(t, recovery.Register(t.Context(), rdb, topic))
	for i := range n {
		a := &redis.XAddArgs{Stream: topic, ID: fmt.Sprintf("17000000000%02d-0", i+1), Values: []string{"msg", fmt.Sprintf(`{"n":%d}`, i)}}
		require.NoError(t, rdb.XAdd(t.Context(), a).Err())
	}
}

// take reads entries as a consumer that holds a lease.
func take(t *testing.T, rdb redis.UniversalClient, topic, group, consumer string, n int64) (*recovery.Group, []redis.XMessage) {
	t.Helper()
	_ = rdb.XGroupCreateMkStream(t.Context(), topic, group, "0").Err() // it may be there
	g := recovery.NewGroup(rdb, topic, group, consumer)
	require.NoError(t, g.Renew(t.Context()))
	read, err := rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: group, Consumer: consumer, Streams: []string{topic, ">"}, Count: n}).Result()
	require.NoError(t, err)
	return g, read[0].Messages
}

// bury makes dead letters of n new entries, and returns the ids of the letters.
func bury(t *testing.T, rdb redis.UniversalClient, topic, group string, n int, text string) []string {
	t.Helper()
	g, entries := take(t, rdb, topic, group, "c-1", int64(n))
	for i, e := range entries {
		l := recovery.Letter{Reason: recovery.Limit, Error: text, Attempts: 5, Aggregate: fmt.Sprintf("o-%d", i)}
		require.NoError(t, g.Bury(t.Context(), topic, e.ID, l))
	}
	letters, err := rdb.XRange(t.Context(), rediskey.DeadLetters(topic), "-", "+").Result()
	require.NoError(t, err)
	ids := make([]string, len(letters))
	for i := range letters {
		ids[i] = letters[i].ID
	}
	return ids
}

func TestStreamsAndGroups(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	sinceSeven(t, rdb)
	s := newSession(t, "streams", url)
	g := newSession(t, "groups", url)
	s.run("streams")
	send(t, rdb, "shop.order:event", 5)
	require.NoError(t, recovery.Register(t.Context(), rdb, "shop.order:command"))
	take(t, rdb, "shop.order:event", "projection", "alive", 2)
	left, _ := take(t, rdb, "shop.order:event", "projection", "left", 1)
	require.NoError(t, left.Leave(t.Context()))
	require.NoError(t, rdb.XGroupCreateConsumer(t.Context(), "shop.order:event", "projection", "nobody").Err())
	require.NoError(t, rdb.XGroupCreateConsumer(t.Context(), "shop.order:event", "projection", "kotlin").Err())
	require.NoError(t, rdb.Set(t.Context(), rediskey.WowLease("shop.order:event", "projection", "kotlin"), "1", 0).Err())
	require.NoError(t, rdb.XGroupCreateConsumer(t.Context(), "shop.order:event", "projection", "late").Err())
	require.NoError(t, rdb.ZAdd(t.Context(), rediskey.Leases("shop.order:event", "projection"),
		redisZ(float64(time.Now().Add(-time.Minute).UnixMilli()), "late")).Err())
	require.NoError(t, rdb.XGroupCreate(t.Context(), "shop.order:event", "later", "0").Err())
	s.run("streams")
	s.once("streams", "shop.order:event", "no.such:event")
	g.run("groups")
	g.once("groups", "shop.order:event", "--consumers")
	g.run("groups", "no.such:event")
	require.NoError(t, rdb.Set(t.Context(), "plain", "text", 0).Err())
	g.run("groups", "plain")
}

func TestDlq(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	topic := "shop.order:event"
	send(t, rdb, topic, 4)
	ids := bury(t, rdb, topic, "projection", 3, "no such \x1b[31mcolumn")
	s := newSession(t, "dlq", url)
	s.run("dlq", "list")
	s.once("dlq", "list", "--limit", "1")
	s.run("dlq", "list", "--reason", "crashed")
	s.run("dlq", "show", topic, ids[0])
	s.run("dlq", "show", topic, "1-1")
	s.run("dlq", "replay")
	s.run("dlq", "replay", "--all")
	s.run("dlq", "replay", topic, "1-1", "--yes")
	s.once("dlq", "replay", topic, ids[0], "--yes")
	s.once("dlq", "replay", "--all", "--yes", "--json")
	s.once("dlq", "replay", "--all", "--yes")
	require.EqualValues(t, 3, rdb.XLen(t.Context(), rediskey.Retry(topic, "projection")).Val())
	ids = bury(t, rdb, topic, "projection", 1, "again")
	s.run("dlq", "discard", topic)
	s.run("dlq", "discard", topic, ids[0])
	require.EqualValues(t, 1, rdb.XLen(t.Context(), rediskey.DeadLetters(topic)).Val())
	s.once("dlq", "discard", "--group", "projection", "--yes")
	require.Zero(t, rdb.XLen(t.Context(), rediskey.DeadLetters(topic)).Val())
}

func TestOutbox(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	require.NoError(t, recovery.Register(t.Context(), rdb, "shop.order:event"))
	plant(t, rdb, order.ID("o-1"), 40, true)
	plant(t, rdb, order.ID("o-2"), 2, true)
	plant(t, rdb, order.ID("o-3"), 1, false)
	s := newSession(t, "outbox", url)
	s.run("outbox", "list")
	s.run("outbox", "publish", "shop.order", "o-1")
	require.Zero(t, rdb.XLen(t.Context(), "shop.order:event").Val())
	s.once("outbox", "publish", "shop.order", "o-1", "--yes")
	sent, err := rdb.XRange(t.Context(), "shop.order:event", "-", "+").Result()
	require.NoError(t, err)
	stored, err := rdb.ZRange(t.Context(), rediskey.Stream(order.ID("o-1")), 0, -1).Result()
	require.NoError(t, err)
	require.Len(t, sent, 40)
	for i := range sent {
		require.Equal(t, map[string]any{"msg": stored[i]}, sent[i].Values, "the stored bytes, in order")
	}
	s.run("outbox", "publish", "shop.order", "o-3")
	require.NoError(t, rdb.ZRemRangeByScore(t.Context(), rediskey.Stream(order.ID("o-2")), "2", "2").Err())
	s.once("outbox", "publish", "shop.order", "--yes", "--json")
	key := rediskey.EventKeys(order.ID("o-3"))
	require.NoError(t, rdb.ZAdd(t.Context(), key.Outbox, redisZ(5, key.Identity)).Err())
	s.once("outbox", "publish", "shop.order", "--yes")
	s.run("outbox", "list", "shop.order")
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	set := func(key, value string, ttl int64) {
		require.NoError(t, rdb.HSet(t.Context(), rediskey.Prepare("username", key), "value", value, "ttlAt", ttl).Err())
	}
	set("ann", `"user-1"`, 148204944000000)
	set("bob", `"user-2"`, 1_700_000_000_000)
	set("cec", `"user-3"`, 1_700_000_000_001)
	set("dan", `{"id":"user-4"}`, 4_000_000_000_000)
	s := newSession(t, "prepare", url)
	s.run("prepare", "get", "username", "ann")
	s.run("prepare", "get", "username", "bob")
	s.once("prepare", "get", "username", "dan")
	s.run("prepare", "get", "username", "eve")
	s.run("prepare", "rollback", "username", "ann")
	s.once("prepare", "rollback", "username", "ann", "--value", `"other"`, "--yes")
	s.once("prepare", "rollback", "username", "ann", "--value", `"user-1"`, "--yes")
	require.Zero(t, rdb.Exists(t.Context(), rediskey.Prepare("username", "ann")).Val())
	s.run("prepare", "sweep", "username")
	require.EqualValues(t, 1, rdb.Exists(t.Context(), rediskey.Prepare("username", "bob")).Val())
	s.once("prepare", "sweep", "username", "--yes")
	s.run("prepare", "sweep", "username")
}
