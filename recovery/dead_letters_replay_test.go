package recovery_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/recovery"
)

// retriesOf are the entries of a group's retry stream, with their fields in order.
func retriesOf(t testing.TB, rdb redis.UniversalClient, topic, group string) (all []recovery.Fields) {
	t.Helper()
	reply, err := rdb.Do(t.Context(), "XRANGE", rediskey.Retry(topic, group), "-", "+").Slice()
	require.NoError(t, err)
	for _, entry := range reply {
		var f recovery.Fields
		for _, text := range entry.([]any)[1].([]any) {
			f = append(f, text.(string))
		}
		all = append(all, f)
	}
	return all
}

func TestDLQ08_AReplayReachesTheGroupThatFailedAndNoOther(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		groupAt(t, rdb, topic, "a", "0")
		groupAt(t, rdb, topic, "b", "0")
		published := publish(t, rdb, topic, 3)
		for _, group := range []string{"a", "b"} {
			ack(t, rdb, topic, group, readAs(t, rdb, topic, group, "c", 2)...)
		}
		before, err := rdb.XInfoGroups(t.Context(), topic).Result()
		require.NoError(t, err)

		l := letter(topic, "a")
		l.Replays = 2
		l.ID = writeLetter(t, rdb, "*", l)
		id, err := letters.Replay(t.Context(), topic, l.ID)
		require.NoError(t, err)
		_, err = letters.Get(t.Context(), topic, l.ID)
		require.ErrorIs(t, err, es.ErrNotFound, "it is moved")

		require.Equal(t, []string{id}, readAs(t, rdb, rediskey.Retry(topic, "a"), "a", "c", 1), "its group begins at 0")
		own, replays, origin, err := recovery.ReadRetry(retriesOf(t, rdb, topic, "a")[0])
		require.NoError(t, err)
		require.Equal(t, l.Fields, own)
		require.Equal(t, []any{3, "3-3"}, []any{replays, origin})

		require.Zero(t, rdb.Exists(t.Context(), rediskey.Retry(topic, "b")).Val())
		require.Equal(t, published, idsIn(t, rdb, topic), "nothing is published again")
		after, err := rdb.XInfoGroups(t.Context(), topic).Result()
		require.NoError(t, err)
		require.Equal(t, before, after, "no group has moved")

		second, err := letters.Replay(t.Context(), topic, writeLetter(t, rdb, "*", l))
		require.NoError(t, err)
		require.Equal(t, []string{second}, readAs(t, rdb, rediskey.Retry(topic, "a"), "a", "c", 1), "the group has kept its place")
	})
}

func TestAManyFieldedLetterIsReplayedAsItIs(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		l := letter(topic, "g")
		l.Fields = nil
		for range 1000 {
			l.Fields = append(l.Fields, "name", "value")
		}
		_, err := letters.Replay(t.Context(), topic, writeLetter(t, rdb, "*", l))
		require.NoError(t, err)
		own, _, _, err := recovery.ReadRetry(retriesOf(t, rdb, topic, "g")[0])
		require.NoError(t, err)
		require.Equal(t, l.Fields, own)
	})
}

func TestALetterWhoseGroupIsGoneIsReportedAndStays(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		id := writeLetter(t, rdb, "*", letter(topic, "gone"))
		refused := func() {
			t.Helper()
			_, err := letters.Replay(t.Context(), topic, id)
			require.ErrorIs(t, err, recovery.ErrNoGroup)
			require.Equal(t, []string{id}, idsIn(t, rdb, rediskey.DeadLetters(topic)))
			require.Zero(t, rdb.Exists(t.Context(), rediskey.Retry(topic, "gone")).Val())
		}
		refused() // there is not even a stream
		groupAt(t, rdb, topic, "another", "0")
		refused()
		stays := writeLetter(t, rdb, "*", letter(topic, "another"))
		var outcomes []error
		for r, err := range letters.ReplayMany(t.Context(), recovery.LetterFilter{Topics: []string{topic}}, 0) {
			require.NoError(t, err)
			outcomes = append(outcomes, r.Err)
		}
		require.Len(t, outcomes, 2)
		require.ErrorIs(t, outcomes[0], recovery.ErrNoGroup)
		require.NoError(t, outcomes[1], "the others go on")
		require.NotContains(t, idsIn(t, rdb, rediskey.DeadLetters(topic)), stays)

		_, err := letters.Replay(t.Context(), topic, "1-1")
		require.ErrorIs(t, err, es.ErrNotFound)
		require.NotErrorIs(t, err, recovery.ErrNoGroup)
	})
}

func TestALetterIsReplayedOnceHoweverManyTry(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		id := writeLetter(t, rdb, "*", letter(topic, "g"))
		outcomes := make(chan error, 10)
		var wg sync.WaitGroup
		for range cap(outcomes) {
			wg.Go(func() {
				_, err := letters.Replay(t.Context(), topic, id)
				outcomes <- err
			})
		}
		wg.Wait()
		close(outcomes)
		replayed := 0
		for err := range outcomes {
			if err == nil {
				replayed++
				continue
			}
			require.ErrorIs(t, err, es.ErrNotFound)
		}
		require.Equal(t, 1, replayed)
		require.Len(t, retriesOf(t, rdb, topic, "g"), 1)
	})
}

func TestAReplayWhoseReplyIsLostMovesTheLetterOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	proxy := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr = proxy.Addr
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	letters := recovery.NewDeadLetters(rdb)
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	_, err := letters.Replay(t.Context(), topic, writeLetter(t, rdb, "*", letter(topic, "g"))) // the script is known
	require.NoError(t, err)
	id := writeLetter(t, rdb, "*", letter(topic, "g"))
	proxy.DropReply("EVALSHA " + lua.ReplayLetter.Hash())
	_, err = letters.Replay(t.Context(), topic, id)
	require.ErrorIs(t, err, es.ErrNotFound, "as documented")
	require.Zero(t, proxy.Pending())
	require.Len(t, retriesOf(t, rdb, topic, "g"), 2)
	require.Empty(t, idsIn(t, rdb, rediskey.DeadLetters(topic)))
}

func TestDLQ04_AReplayWhileMemoryIsFullLosesNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	letters := recovery.NewDeadLetters(rdb)
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	groupAt(t, rdb, topic, "known", "0")
	groupAt(t, rdb, rediskey.Retry(topic, "known"), "known", "0")
	ids := []string{writeLetter(t, rdb, "*", letter(topic, "g")), writeLetter(t, rdb, "*", letter(topic, "known"))}
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	for _, id := range ids {
		_, err := letters.Replay(t.Context(), topic, id)
		require.ErrorIs(t, err, es.ErrOutOfMemory)
	}
	for _, err := range letters.ReplayMany(t.Context(), recovery.LetterFilter{Topics: []string{topic}}, 0) {
		require.ErrorIs(t, err, es.ErrOutOfMemory, "it ends")
	}
	require.Equal(t, ids, idsIn(t, rdb, rediskey.DeadLetters(topic)))
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	for _, id := range ids {
		_, err := letters.Replay(t.Context(), topic, id)
		require.NoError(t, err)
	}
	require.Len(t, retriesOf(t, rdb, topic, "g"), 1)
	require.Len(t, retriesOf(t, rdb, topic, "known"), 1)
}

func TestAReplayThatCannotBeWrittenLeavesTheLetter(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		id := writeLetter(t, rdb, "*", letter(topic, "g"))
		require.NoError(t, rdb.Set(t.Context(), rediskey.Retry(topic, "g"), "no stream", 0).Err())
		_, err := letters.Replay(t.Context(), topic, id)
		require.ErrorIs(t, err, es.ErrCorrupt)
		require.Equal(t, []string{id}, idsIn(t, rdb, rediskey.DeadLetters(topic)))
	})
}

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
		for range letters.ReplayMany(t.Context(), f, 0) {
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
		for range recovery.NewDeadLetters(rdb).ReplayMany(t.Context(), recovery.LetterFilter{Topics: []string{freshTopic()}}, 0) {
			t.Fatal("there is no letter")
		}
	})
}
