package recovery_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

const (
	patience = 60 * time.Second
	pause    = 5 * time.Millisecond
)

// freshTopic is a topic that no other test has.
func freshTopic() string { return "recovery.t" + strings.ToLower(rand.Text()[:12]) + ":event" }

// publish adds n entries of one field, and returns their ids.
func publish(t testing.TB, rdb redis.UniversalClient, stream string, n int) []string {
	t.Helper()
	ids := make([]string, n)
	_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range n {
			p.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, Values: []string{"msg", "{}"}})
		}
		return nil
	})
	require.NoError(t, err)
	entries, err := rdb.XRevRangeN(t.Context(), stream, "+", "-", int64(n)).Result()
	require.NoError(t, err)
	require.Len(t, entries, n)
	for i, e := range entries {
		ids[n-1-i] = e.ID
	}
	return ids
}

// readAs reads n entries for a consumer, all of which must be there.
func readAs(t testing.TB, rdb redis.UniversalClient, stream, group, consumer string, n int) []string {
	t.Helper()
	streams, err := rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{
		Group: group, Consumer: consumer, Streams: []string{stream, ">"}, Count: int64(n), Block: -1,
	}).Result()
	require.NoError(t, err)
	require.Len(t, streams[0].Messages, n)
	ids := make([]string, n)
	for i, m := range streams[0].Messages {
		ids[i] = m.ID
	}
	return ids
}

// groupAt makes a group that begins after an id, and the stream.
func groupAt(t testing.TB, rdb redis.UniversalClient, stream, group, id string) {
	t.Helper()
	require.NoError(t, rdb.XGroupCreateMkStream(t.Context(), stream, group, id).Err())
}

func ack(t testing.TB, rdb redis.UniversalClient, stream, group string, ids ...string) {
	t.Helper()
	n, err := rdb.XAck(t.Context(), stream, group, ids...).Result()
	require.NoError(t, err)
	require.EqualValues(t, len(ids), n)
}

func idsIn(t testing.TB, rdb redis.UniversalClient, stream string) []string {
	t.Helper()
	entries, err := rdb.XRange(t.Context(), stream, "-", "+").Result()
	require.NoError(t, err)
	ids := []string{}
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// serverTime is the server's clock in ms, moved by d.
func serverTime(t testing.TB, rdb redis.UniversalClient, d time.Duration) int64 {
	t.Helper()
	now, err := rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	return now.Add(d).UnixMilli()
}

func TestTopicsAreKnownOnceRegistered(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, b := freshTopic(), freshTopic()
		require.NoError(t, recovery.Register(t.Context(), rdb, a, b))
		require.NoError(t, recovery.Register(t.Context(), rdb, b))
		require.NoError(t, recovery.Register(t.Context(), rdb))
		topics, err := recovery.Topics(t.Context(), rdb)
		require.NoError(t, err)
		require.IsIncreasing(t, topics)
		require.Contains(t, topics, a)
		require.Contains(t, topics, b)
	})
}

func TestTopicsWhoseKeysWouldNotShareASlotAreRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	letters := recovery.NewDeadLetters(rdb)
	for _, topic := range []string{"", " ", "a{b", "a}b", "\xff", strings.Repeat("x", es.MaxIDBytes+1)} {
		require.ErrorIs(t, recovery.Register(t.Context(), rdb, topic), es.ErrInvalid)
		_, err := recovery.Trim(t.Context(), rdb, topic, recovery.TrimOptions{MaxLen: 1})
		require.ErrorIs(t, err, es.ErrInvalid)
		require.Less(t, len(err.Error()), 300, "an over-long name stays out of the log")
		_, err = recovery.Reap(t.Context(), rdb, topic, recovery.ReapOptions{})
		require.ErrorIs(t, err, es.ErrInvalid)
		_, err = letters.Get(t.Context(), topic, "1-1")
		require.ErrorIs(t, err, es.ErrInvalid)
		_, err = letters.Discard(t.Context(), topic, "1-1")
		require.ErrorIs(t, err, es.ErrInvalid)
		_, err = letters.Count(t.Context(), recovery.LetterFilter{Topics: []string{topic}})
		require.ErrorIs(t, err, es.ErrInvalid)
		_, err = letters.Expire(t.Context(), recovery.Retention{}, topic)
		require.ErrorIs(t, err, es.ErrInvalid)
	}
}
