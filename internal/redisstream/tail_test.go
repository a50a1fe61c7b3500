package redisstream_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
)

// nextIDs reads until something came, whatever fails meanwhile.
func nextIDs(t *testing.T, tail *redisstream.Tail) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(ids) == 0 {
		require.NoError(t, ctx.Err())
		messages, _ := tail.Next(ctx, 10)
		for _, m := range messages {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func TestATailReadsOnAndTrimsBehindItself(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		stream := "{tail." + rand.Text() + "}"
		tail, err := redisstream.NewTail(rdb, stream)
		require.NoError(t, err)
		defer tail.Close()
		addAt := func(id string) {
			require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: id, Values: []string{"msg", "x"}}).Err())
		}
		messages, err := tail.Next(t.Context(), 10)
		require.NoError(t, err)
		require.Empty(t, messages, "the first look does not wait")
		addAt("7-1")
		addAt("7-2")
		require.Equal(t, []string{"7-1", "7-2"}, nextIDs(t, tail))
		messages, err = tail.Next(t.Context(), 10)
		require.NoError(t, err)
		require.Empty(t, messages)
		require.EqualValues(t, 1, rdb.XLen(t.Context(), stream).Val(), "all but the last is removed")

		ended, end := context.WithCancel(t.Context())
		end()
		_, err = tail.Next(ended, 10)
		require.NoError(t, err, "an end is no error")

		// Another stream has taken its place, whose ids are smaller.
		require.NoError(t, rdb.Del(t.Context(), stream).Err())
		require.NoError(t, rdb.Set(t.Context(), stream, "in the way", 0).Err())
		require.Eventually(t, func() bool { _, err := tail.Next(t.Context(), 10); return err != nil }, time.Minute, time.Millisecond)
		require.NoError(t, rdb.Del(t.Context(), stream).Err())
		addAt("3-1")
		require.Equal(t, []string{"3-1"}, nextIDs(t, tail))
	})
}

func TestATailNeedsAClientOfItsOwn(t *testing.T) {
	t.Parallel()
	_, err := redisstream.NewTail(redis.NewRing(&redis.RingOptions{}), "s")
	require.Error(t, err)
}
