package recovery_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// A replay of many is interrupted again and again, while more letters arrive.
func TestCLI06_AnInterruptedReplayLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topics := []string{freshTopic(), freshTopic()}
		for _, topic := range topics {
			groupAt(t, rdb, topic, "g", "0")
		}
		write := func(n int) {
			for i := range n {
				writeLetter(t, rdb, "*", letter(topics[i%2], "g"))
			}
		}
		f := recovery.LetterFilter{Topics: topics}
		const rounds, first, each = 25, 200, 4
		write(first)
		written, replayed := first, 0
		for range rounds {
			stop := rand.IntN(10)
			ctx, cancel := context.WithCancel(t.Context())
			for r, err := range letters.ReplayMany(ctx, f, 0) {
				if err != nil { // the context's end
					require.ErrorIs(t, err, context.Canceled)
					break
				}
				require.NoError(t, r.Err)
				replayed++
				if stop--; stop == 0 {
					cancel()
				} else if stop < -1 {
					break
				}
			}
			cancel()
			write(each)
			written += each
			n, err := letters.Count(t.Context(), f)
			require.NoError(t, err)
			retries := int64(len(retriesOf(t, rdb, topics[0], "g")) + len(retriesOf(t, rdb, topics[1], "g")))
			require.EqualValues(t, written, n+retries, "replayed and remaining are all")
		}
		require.Positive(t, replayed)
		for _, err := range letters.ReplayMany(t.Context(), f, 0) {
			require.NoError(t, err)
		}
		require.Equal(t, written, len(retriesOf(t, rdb, topics[0], "g"))+len(retriesOf(t, rdb, topics[1], "g")))
	})
}

func TestManyAreReplayedOldestFirstAndNewcomersAreNot(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		groupAt(t, rdb, topic, "h", "0")
		var want []string
		for range 60 {
			want = append(want, writeLetter(t, rdb, "*", letter(topic, "g")))
			writeLetter(t, rdb, "*", letter(topic, "h"))
		}
		var got []string
		for r, err := range letters.ReplayMany(t.Context(), recovery.LetterFilter{Topics: []string{topic}, Group: "g"}, 0) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
			require.NotEmpty(t, r.Retry)
			got = append(got, r.Letter.ID)
			writeLetter(t, rdb, "*", letter(topic, "g")) // it fails again
		}
		require.Equal(t, want, got)
		require.Len(t, retriesOf(t, rdb, topic, "g"), 60)
		n, err := letters.Count(t.Context(), recovery.LetterFilter{Topics: []string{topic}})
		require.NoError(t, err)
		require.EqualValues(t, 120, n, "those of the other group, and those that failed again")
	})
}

func TestManyAreReplayedAtTheRateAskedFor(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	letters := recovery.NewDeadLetters(rdb)
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	for range 11 {
		writeLetter(t, rdb, "*", letter(topic, "g"))
	}
	f := recovery.LetterFilter{Topics: []string{topic}}
	begin := time.Now()
	for _, err := range letters.ReplayMany(t.Context(), f, 20) {
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, time.Since(begin), 500*time.Millisecond, "10 pauses of a twentieth")

	writeLetter(t, rdb, "*", letter(topic, "g"))
	writeLetter(t, rdb, "*", letter(topic, "g"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range letters.ReplayMany(ctx, f, 0.001) {
		if n++; n == 1 {
			require.NoError(t, err)
			cancel() // it does not sleep through
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, 2, n)
	for _, err := range letters.ReplayMany(t.Context(), f, -1) {
		require.ErrorIs(t, err, es.ErrInvalid)
	}
	require.Len(t, idsIn(t, rdb, rediskey.DeadLetters(topic)), 1)
}

func TestReplayOfManyWhereThereIsNone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, err := range recovery.NewDeadLetters(rdb).ReplayMany(t.Context(), recovery.LetterFilter{Topics: []string{freshTopic()}}, 0) {
			require.NoError(t, err)
			t.Fatal("there is no letter")
		}
	})
}
