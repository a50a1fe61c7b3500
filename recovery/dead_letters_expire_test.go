package recovery_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestDiscardedLettersAreGone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		for i := range 4 {
			writeLetter(t, rdb, fmt.Sprintf("1-%d", i+1), letter(topic, "g"))
		}
		n, err := letters.Discard(t.Context(), topic, "1-1", "1-3", "5-5")
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		require.Equal(t, []string{"1-2", "1-4"}, idsIn(t, rdb, rediskey.DeadLetters(topic)))
		n, err = letters.Discard(t.Context(), topic)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestLettersExpireByAgeAndByNumberAndNeverSilently(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic, other := freshTopic(), freshTopic()
		key := rediskey.DeadLetters(topic)
		_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i, age := range []time.Duration{31 * 24 * time.Hour, 29 * 24 * time.Hour} {
				for n := range 1800 {
					id := fmt.Sprintf("%d-%d", serverTime(t, rdb, -age), n+1)
					p.XAdd(t.Context(), &redis.XAddArgs{Stream: key, ID: id, Values: []string{"group", strconv.Itoa(i)}})
				}
			}
			return nil
		})
		require.NoError(t, err)
		writeLetter(t, rdb, "*", letter(other, "g"))
		expire := func(r recovery.Retention) []recovery.Expired {
			gone, err := letters.Expire(t.Context(), r, topic, other)
			require.NoError(t, err)
			return gone
		}
		require.Equal(t, []recovery.Expired{{Topic: topic, TooOld: 1800}}, expire(recovery.Retention{}))
		require.Empty(t, expire(recovery.Retention{}))
		require.Equal(t, []recovery.Expired{{Topic: topic, TooMany: 1793}}, expire(recovery.Retention{MaxCount: 7}))
		require.Len(t, idsIn(t, rdb, key), 7)
		require.Equal(t, []recovery.Expired{{Topic: topic, TooOld: 7}}, expire(recovery.Retention{MaxAge: 28 * 24 * time.Hour}))
		require.Len(t, idsIn(t, rdb, rediskey.DeadLetters(other)), 1)

		for _, r := range []recovery.Retention{{MaxAge: -1}, {MaxCount: -1}} {
			_, err := letters.Expire(t.Context(), r, topic)
			require.ErrorIs(t, err, es.ErrInvalid)
		}
	})
}

func TestStrangeKeysAmongTheDeadLettersAreReported(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		require.NoError(t, rdb.Set(t.Context(), rediskey.DeadLetters(topic), "no stream", 0).Err())
		f := recovery.LetterFilter{Topics: []string{topic}}
		n := 0
		for _, err := range letters.List(t.Context(), f, recovery.Letter{}) {
			require.ErrorIs(t, err, es.ErrCorrupt)
			n++
		}
		require.Equal(t, 1, n, "the first error ends it")
		for _, err := range letters.ReplayMany(t.Context(), f, 0) {
			require.ErrorIs(t, err, es.ErrCorrupt)
			n++
		}
		require.Equal(t, 2, n)
		_, err := letters.Count(t.Context(), f)
		require.ErrorIs(t, err, es.ErrCorrupt)
		_, err = letters.Expire(t.Context(), recovery.Retention{}, topic)
		require.ErrorIs(t, err, es.ErrCorrupt)
		require.Contains(t, err.Error(), topic)
	})
}
