package recovery_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func trimmed(t testing.TB, rdb redis.UniversalClient, topic string, o recovery.TrimOptions) recovery.Trimmed {
	t.Helper()
	done, err := recovery.Trim(t.Context(), rdb, topic, o)
	require.NoError(t, err)
	return done
}

// old adds n entries that are two hours old, with ids of their own.
func old(t testing.TB, rdb redis.UniversalClient, stream string, n int) []string {
	t.Helper()
	at := serverTime(t, rdb, -2*time.Hour)
	ids := make([]string, n)
	_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range ids {
			ids[i] = fmt.Sprintf("%d-%d", at, i+1)
			p.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: ids[i], Values: []string{"msg", "{}"}})
		}
		return nil
	})
	require.NoError(t, err)
	return ids
}

func TestDEL05_TrimmingNeverPassesWhatAGroupHasNotAcked(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "fast", "0")
		groupAt(t, rdb, topic, "slow", "0")
		ids := old(t, rdb, topic, 5000)
		readAs(t, rdb, topic, "fast", "c", 5000)
		ack(t, rdb, topic, "fast", ids...)
		readAs(t, rdb, topic, "slow", "c", 3000)
		ack(t, rdb, topic, "slow", slices.Concat(ids[:1000], ids[1001:2000])...)

		for _, o := range []recovery.TrimOptions{{MaxLen: 10}, {MaxAge: time.Hour}, {MaxLen: 10, MaxAge: time.Hour}} {
			trimmed(t, rdb, topic, o)
			require.Equal(t, ids[1000:], idsIn(t, rdb, topic), "ids[1000] is pending")
		}
		ack(t, rdb, topic, "slow", ids[1000])
		require.EqualValues(t, 1000, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 10}).Removed)
		ack(t, rdb, topic, "slow", ids[2000:3000]...)
		require.EqualValues(t, 1000, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 10}).Removed)
		require.Equal(t, ids[3000:], idsIn(t, rdb, topic), "ids[3000] is not read")
		require.Equal(t, ids[3000:], readAs(t, rdb, topic, "slow", "c", 2000), "the slow group misses nothing")
		ack(t, rdb, topic, "slow", ids[3000:]...)
		require.EqualValues(t, 1990, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 10}).Removed)
		require.Equal(t, ids[4990:], idsIn(t, rdb, topic))
	})
}

func TestDEL06_TheGroupsThatHoldTrimmingBackAreNamed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		for _, group := range []string{"abandoned", "busy", "done"} {
			groupAt(t, rdb, topic, group, "0")
		}
		ids := old(t, rdb, topic, 100)
		readAs(t, rdb, topic, "busy", "c", 60)
		ack(t, rdb, topic, "busy", ids[10:20]...)
		readAs(t, rdb, topic, "done", "c", 100)
		ack(t, rdb, topic, "done", ids...)
		young := publish(t, rdb, topic, 1)

		done := trimmed(t, rdb, topic, recovery.TrimOptions{MaxAge: time.Hour})
		require.Zero(t, done.Removed+done.Lost)
		require.Equal(t, []string{"abandoned", "busy"}, groupNames(done.HeldBack), "done has only what is young to read")
		require.Equal(t, []string{ids[0], ids[0]}, []string{done.HeldBack[0].First, done.HeldBack[1].First})
		require.Equal(t, []int64{0, 50}, []int64{done.HeldBack[0].Pending, done.HeldBack[1].Pending})
		for i, unread := range []int64{101, 41} {
			if done.HeldBack[i].UnreadKnown { // before 7.0 nobody counts
				require.Equal(t, unread, done.HeldBack[i].Unread)
			}
		}
		require.NoError(t, rdb.XGroupDestroy(t.Context(), topic, "abandoned").Err())
		require.NoError(t, rdb.XGroupDestroy(t.Context(), topic, "busy").Err())
		require.Equal(t, recovery.Trimmed{Removed: 100}, trimmed(t, rdb, topic, recovery.TrimOptions{MaxAge: time.Hour}))
		require.Equal(t, young, idsIn(t, rdb, topic))
	})
}

func TestDEL07_AnUnknownLagIsUnknownAndNeverZero(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		ids := old(t, rdb, topic, 4)
		ack(t, rdb, topic, "g", readAs(t, rdb, topic, "g", "c", 1)...)
		require.NoError(t, rdb.XDel(t.Context(), topic, ids[2]).Err())

		done := trimmed(t, rdb, topic, recovery.TrimOptions{MaxAge: time.Hour})
		require.EqualValues(t, 1, done.Removed)
		require.Equal(t, []recovery.Backlog{{Group: "g", First: ids[1]}}, done.HeldBack, "the ids tell that it lags")
		readAs(t, rdb, topic, "g", "c", 2) // ids[1] and ids[3]
		ack(t, rdb, topic, "g", ids[1])
		done = trimmed(t, rdb, topic, recovery.TrimOptions{MaxAge: time.Hour})
		require.EqualValues(t, 1, done.Removed)
		require.Equal(t, []recovery.Backlog{{Group: "g", First: ids[3], Pending: 1, UnreadKnown: true}}, done.HeldBack,
			"the ids tell that it has read all")
	})
}

func TestDEL09_TrimmingIsExact(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		ids := old(t, rdb, topic, 200)
		readAs(t, rdb, topic, "g", "c", 200)
		ack(t, rdb, topic, "g", ids...)
		require.EqualValues(t, 190, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 10}).Removed)
		require.Equal(t, ids[190:], idsIn(t, rdb, topic))
		require.EqualValues(t, 10, trimmed(t, rdb, topic, recovery.TrimOptions{MaxAge: time.Millisecond}).Removed)
		require.Empty(t, idsIn(t, rdb, topic))
	})
}

func TestLOST12_AGroupReceivesWhatAnotherHasAckedBeforeItBegan(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "a", "0")
		groupAt(t, rdb, topic, "b", "0")
		ids := old(t, rdb, topic, 20)
		ack(t, rdb, topic, "a", readAs(t, rdb, topic, "a", "c", 20)...)
		require.Zero(t, trimmed(t, rdb, topic, recovery.TrimOptions{MaxAge: time.Millisecond}).Removed)
		require.Equal(t, ids, readAs(t, rdb, topic, "b", "c", 20))
	})
}

// A length limit is looked for in steps; a group in the way must not make it look for ever.
func TestLongStreamsAndLargeEntriesAreTrimmedInSteps(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		ids := old(t, rdb, topic, 9000)
		readAs(t, rdb, topic, "g", "c", 6000)
		ack(t, rdb, topic, "g", ids[:500]...)
		require.EqualValues(t, 500, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 10}).Removed)
		ack(t, rdb, topic, "g", ids[500:6000]...)
		require.EqualValues(t, 5500, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 10}).Removed)
		require.Zero(t, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 10}).Removed)
		require.EqualValues(t, 2999, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 10, LossyMaxLen: 1}).Lost)

		large := freshTopic()
		groupAt(t, rdb, large, "g", "0")
		text := strings.Repeat("x", 1<<20)
		for range 9 {
			require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: large, Values: []string{"msg", text}}).Err())
		}
		ack(t, rdb, large, "g", readAs(t, rdb, large, "g", "c", 9)...)
		require.EqualValues(t, 8, trimmed(t, rdb, large, recovery.TrimOptions{MaxLen: 1}).Removed)
	})
}

// Redis compares ids by number: 9 is before 10, and both parts go up to 2^64-1.
func TestIDsAreComparedByNumber(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		ids := []string{"9-9", "9-10", "10-9", "10-10", "10-9007199254740992", "10-9007199254740993", "10-18446744073709551615", "11-0", "100-1"}
		for _, id := range ids {
			require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, ID: id, Values: []string{"msg", "{}"}}).Err())
		}
		readAs(t, rdb, topic, "g", "c", len(ids)-1)
		for i, id := range ids[:len(ids)-1] {
			trimmed(t, rdb, topic, recovery.TrimOptions{MaxAge: time.Hour})
			require.Equal(t, ids[i:], idsIn(t, rdb, topic))
			ack(t, rdb, topic, "g", id)
		}
		trimmed(t, rdb, topic, recovery.TrimOptions{MaxAge: time.Hour})
		require.Equal(t, ids[len(ids)-1:], idsIn(t, rdb, topic))
	})
}

func TestRetriesThatWereAckedGoWithTheTopic(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		retry := rediskey.Retry(topic, "g")
		groupAt(t, rdb, topic, "g", "0")
		groupAt(t, rdb, retry, "g", "0")
		ids := old(t, rdb, retry, 10)
		readAs(t, rdb, retry, "g", "c", 7)
		ack(t, rdb, retry, "g", ids[:4]...)
		require.Equal(t, recovery.Trimmed{}, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 1000}))
		require.Equal(t, ids[4:], idsIn(t, rdb, retry))
	})
}

// A group that is made while it trims holds what there is at that moment.
func TestNoNewGroupSlipsIntoATrim(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "old", "0")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		trimmer := make(chan error, 1)
		go func() {
			var err error
			for ctx.Err() == nil && err == nil {
				_, err = recovery.Trim(t.Context(), rdb, topic, recovery.TrimOptions{MaxLen: 1}) //nolint:contextcheck // it is the test's own
			}
			trimmer <- err
		}()
		for range 100 {
			publish(t, rdb, topic, 20)
			read := readAs(t, rdb, topic, "old", "c", 20)
			var there *redis.XMessageSliceCmd
			_, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
				p.XAck(t.Context(), topic, "old", read...)
				p.XGroupCreate(t.Context(), topic, "new", "0")
				there = p.XRange(t.Context(), topic, "-", "+")
				return nil
			})
			require.NoError(t, err)
			got := readAs(t, rdb, topic, "new", "c", len(there.Val()))
			require.Equal(t, there.Val()[0].ID, got[0])
			require.NoError(t, rdb.XGroupDestroy(t.Context(), topic, "new").Err())
		}
		cancel()
		require.NoError(t, <-trimmer)
	})
}

func groupNames(backlogs []recovery.Backlog) []string {
	names := []string{}
	for _, b := range backlogs {
		names = append(names, b.Group)
	}
	slices.Sort(names)
	return names
}
