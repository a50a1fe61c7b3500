package recovery_test

import (
	"fmt"
	"strings"
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

// entryOf is a topic with one entry of these fields, read by "a".
func entryOf(t testing.TB, rdb redis.UniversalClient, fields recovery.Fields) (g *recovery.Group, id string) {
	t.Helper()
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	id, err := rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: []string(fields)}).Result()
	require.NoError(t, err)
	readAs(t, rdb, topic, "g", "a", 1)
	return recovery.NewGroup(rdb, topic, "g", "a"), id
}

// hostile fields have the names of a letter's own, twice, and bytes of any kind.
var hostile = recovery.Fields{
	"msg", `{"a":1}`, "msg", "once more", "", "", "stream", "x", "group", "x", "replays", "7", "origin", "1-1", "packed", "3:abc", "f:msg", "f:",
	"bytes", "\x00\xff\r\n", "é", "😀",
}

func TestALetterHoldsTheEntryUnchangedAndAllThatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, id := entryOf(t, rdb, hostile)
		_, first, err := a.Fail(t.Context(), a.Topic, id, errors1)
		require.NoError(t, err)
		require.NoError(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{
			Reason: recovery.Limit, Error: "it failed", Attempts: 5, Aggregate: "o-1",
			Fields: recovery.Fields{"the", "record counts"}, Group: "not g", Consumer: "not a", Stream: "elsewhere", Entry: "8-8",
		}))
		require.Empty(t, pendingIDs(t, rdb, a.Topic, ""))
		require.Empty(t, failuresOf(t, rdb, a.Topic))
		letters := buried(t, rdb, a.Topic)
		require.Len(t, letters, 1)
		l := letters[0]
		require.WithinRange(t, l.Last, first, time.UnixMilli(serverTime(t, rdb, 0)))
		l.Last, l.ID = time.Time{}, ""
		require.Equal(t, recovery.Letter{
			Topic: a.Topic, Group: "g", Consumer: "a", Reason: recovery.Limit, Error: "it failed", Attempts: 5, First: first,
			Stream: a.Topic, Entry: id, Origin: id, Aggregate: "o-1", Fields: hostile,
		}, l)
	})
}

func TestALetterOfAReplayedEntryCountsOn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, id := entryOf(t, rdb, hostile)
		groupAt(t, rdb, a.Retry(), "g", "0")
		letters := recovery.NewDeadLetters(rdb)
		stream, entry := a.Topic, id
		for replays := range 3 {
			require.NoError(t, a.Bury(t.Context(), stream, entry, recovery.Letter{Reason: recovery.Permanent}))
			l := buried(t, rdb, a.Topic)[0]
			require.Equal(t, replays, l.Replays)
			require.Equal(t, id, l.Origin)
			require.Equal(t, []string{stream, entry}, []string{l.Stream, l.Entry})
			require.Equal(t, hostile, l.Fields)
			_, err := letters.Replay(t.Context(), a.Topic, l.ID)
			require.NoError(t, err)
			stream, entry = a.Retry(), readAs(t, rdb, a.Retry(), "g", "a", 1)[0]
		}
		silence(t, rdb, a.Topic, "a")
		taken, _ := sweep(t, settled(t, rdb, a.Topic, "b"), a.Retry(), 0)
		require.Len(t, taken, 1)
		require.Equal(t, hostile, taken[0].Fields)
		require.Equal(t, 3, taken[0].Replays)
		require.Equal(t, id, taken[0].Origin)
	})
}

func TestSCR04_EntriesOfAnyNumberOfFieldsAreBuried(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for _, n := range []int{1, 999, 1000, 1001, 7_999, 8_001, 50_000} {
		for _, gone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d gone %v", n, gone), func(t *testing.T) {
				t.Parallel()
				var fields recovery.Fields
				for i := range n {
					fields = append(fields, fmt.Sprintf("3:%d:", i%7), strings.Repeat("x", i%3))
				}
				a, id := entryOf(t, rdb, fields)
				l := recovery.Letter{}
				if gone {
					l.Fields = fields
					require.NoError(t, rdb.XDel(t.Context(), a.Topic, id).Err())
				}
				require.NoError(t, a.Bury(t.Context(), a.Topic, id, l))
				require.Equal(t, fields, buried(t, rdb, a.Topic)[0].Fields)
				require.Empty(t, pendingIDs(t, rdb, a.Topic, ""))
			})
		}
	}
}

// A record may be trimmed away while its message is handled.
func TestAnEntryWhoseRecordIsGoneIsBuriedFromMemory(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, id := entryOf(t, rdb, recovery.Fields{"msg", "{}"})
		require.NoError(t, rdb.XTrimMaxLen(t.Context(), a.Topic, 0).Err())
		require.NoError(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{Fields: hostile, Replays: 2, Origin: "4-4"}))
		l := buried(t, rdb, a.Topic)[0]
		require.Equal(t, hostile, l.Fields)
		require.Equal(t, 2, l.Replays)
		require.Equal(t, "4-4", l.Origin)
		require.Empty(t, pendingIDs(t, rdb, a.Topic, ""))
	})
}

func TestDLQ03_OneLetterForEachEntryWhateverIsLost(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	a, id := entryOf(t, rdb, hostile)
	known, other := entryOf(t, rdb, hostile)
	require.NoError(t, known.Bury(t.Context(), known.Topic, other, recovery.Letter{})) // the server knows the script now
	p.DropReply("EVALSHA " + lua.BuryEntry.Hash())
	require.NoError(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{Reason: recovery.Undecodable}))
	require.Zero(t, p.Pending(), "the reply was lost")
	require.Len(t, buried(t, rdb, a.Topic), 1)
	require.Empty(t, pendingIDs(t, rdb, a.Topic, ""))
	require.NoError(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{}), "once more, by its caller")
	require.Len(t, buried(t, rdb, a.Topic), 1)

	b := recovery.NewGroup(rdb, a.Topic, "g", "b")
	require.ErrorIs(t, b.Bury(t.Context(), a.Topic, id, recovery.Letter{}), recovery.ErrNotOwner, "it was another's doing")
	require.Len(t, buried(t, rdb, a.Topic), 1)
}

// The letter is found among those that others have written since.
func TestDLQ03_ALostReplyIsKnownByItsLetterAmongOthers(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "a", 120)
		a := recovery.NewGroup(rdb, topic, "g", "a")
		for _, id := range ids[:119] {
			require.NoError(t, a.Bury(t.Context(), topic, id, recovery.Letter{}))
		}
		require.NoError(t, a.Bury(t.Context(), topic, ids[118], recovery.Letter{}))
		require.NoError(t, a.Bury(t.Context(), topic, ids[20], recovery.Letter{}))
		require.ErrorIs(t, a.Bury(t.Context(), topic, ids[0], recovery.Letter{}), recovery.ErrNotOwner, "too long ago to be a lost reply")
		require.Len(t, buried(t, rdb, topic), 119)
		require.ErrorIs(t, a.Bury(t.Context(), topic, "1-1", recovery.Letter{}), recovery.ErrNotOwner)
		require.NoError(t, rdb.XAck(t.Context(), topic, "g", ids[119]).Err())
		require.ErrorIs(t, a.Bury(t.Context(), topic, ids[119], recovery.Letter{}), recovery.ErrNotOwner)
	})
}

func TestDUP07_OneWhoseEntriesWereClaimedCanDoNothingToThem(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "stale", 1)
		stale := recovery.NewGroup(rdb, topic, "g", "stale")
		b := settled(t, rdb, topic, "b")
		taken, _ := sweep(t, b, topic, 0)
		require.Equal(t, ids, entryIDs(taken))

		lost, err := stale.Ack(t.Context(), topic, ids)
		require.NoError(t, err)
		require.Equal(t, ids, lost)
		_, _, err = stale.Fail(t.Context(), topic, ids[0], errors1)
		require.ErrorIs(t, err, recovery.ErrNotOwner)
		_, err = stale.Raise(t.Context(), topic, ids[0])
		require.ErrorIs(t, err, recovery.ErrNotOwner)
		require.ErrorIs(t, stale.Bury(t.Context(), topic, ids[0], recovery.Letter{}), recovery.ErrNotOwner)
		require.NoError(t, stale.GiveBack(t.Context(), topic, ids))
		require.Equal(t, ids, pendingIDs(t, rdb, topic, "b"))
		require.EqualValues(t, 1, pendingOf(t, rdb, topic, "b")[0].RetryCount)
		require.Empty(t, buried(t, rdb, topic))
		require.Empty(t, failuresOf(t, rdb, topic))
		found, swept := sweepHolding(t, stale, topic, 0, none)
		require.Empty(t, found, "it renews its lease before anything else")
		require.True(t, swept.Waits)
	})
}

func TestDLQ04_WithoutALetterThereIsNoAck(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	a, id := entryOf(t, rdb, hostile)
	_, _, err := a.Fail(t.Context(), a.Topic, id, errors1)
	require.NoError(t, err)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorIs(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{}), es.ErrOutOfMemory)
	require.Equal(t, []string{id}, pendingIDs(t, rdb, a.Topic, "a"))
	require.Len(t, failuresOf(t, rdb, a.Topic), 1)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.NoError(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{}))
	require.Len(t, buried(t, rdb, a.Topic), 1)
	require.Empty(t, pendingIDs(t, rdb, a.Topic, ""))
}

func TestDLQ04_WrongKeysInTheWayLeaveTheEntryPending(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, key := range []func(topic string) string{rediskey.DeadLetters, func(topic string) string { return rediskey.Failed(topic, "g") }} {
			a, id := entryOf(t, rdb, hostile)
			require.NoError(t, rdb.Set(t.Context(), key(a.Topic), "in the way", 0).Err())
			require.ErrorIs(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{}), es.ErrCorrupt)
			require.Equal(t, []string{id}, pendingIDs(t, rdb, a.Topic, "a"))
			require.NoError(t, rdb.Del(t.Context(), key(a.Topic)).Err())
			require.NoError(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{}))
			require.Len(t, buried(t, rdb, a.Topic), 1)
		}
	})
}
