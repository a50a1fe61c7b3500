package recovery_test

import (
	"sync"
	"testing"

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

		require.NoError(t, rdb.Del(t.Context(), rediskey.Retry(topic, "g")).Err())
		require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{
			Stream: rediskey.Retry(topic, "g"), ID: "18446744073709551615-18446744073709551615", Values: []string{"the", "last"},
		}).Err())
		_, err = letters.Replay(t.Context(), topic, id)
		require.ErrorContains(t, err, "exhausted")
		require.Equal(t, []string{id}, idsIn(t, rdb, rediskey.DeadLetters(topic)))
	})
}

// A group that was lost begins again before what had been replayed to it.
func TestAReplayMakesTheGroupAtTheBeginning(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		earlier := publish(t, rdb, rediskey.Retry(topic, "g"), 1)
		id, err := letters.Replay(t.Context(), topic, writeLetter(t, rdb, "*", letter(topic, "g")))
		require.NoError(t, err)
		require.Equal(t, append(earlier, id), readAs(t, rdb, rediskey.Retry(topic, "g"), "g", "c", 2))
	})
}

// From the topic to the letters, back, and to the letters again.
func TestAMessageThatFailsAgainSaysHowOftenItWasReplayed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		g := recovery.NewGroup(rdb, topic, "g", "c")
		require.NoError(t, g.Renew(t.Context()))
		groupAt(t, rdb, topic, "g", "0")
		published := publish(t, rdb, topic, 1)
		stream, f := topic, recovery.LetterFilter{Topics: []string{topic}}
		for replays := range 3 {
			id := readAs(t, rdb, stream, "g", "c", 1)[0]
			require.NoError(t, g.Bury(t.Context(), stream, id, recovery.Letter{Reason: recovery.Limit, Aggregate: "o-1"}))
			l, _, err := letters.Oldest(t.Context(), f)
			require.NoError(t, err)
			require.Equal(t, []any{replays, published[0], stream, id}, []any{l.Replays, l.Origin, l.Stream, l.Entry})
			require.Equal(t, recovery.Fields{"msg", "{}"}, l.Fields)
			_, err = letters.Replay(t.Context(), topic, l.ID)
			require.NoError(t, err)
			stream = g.Retry()
		}
	})
}
