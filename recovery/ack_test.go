package recovery_test

import (
	"slices"
	"strconv"
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

func claimBy(t testing.TB, rdb redis.UniversalClient, stream, consumer string, ids ...string) {
	t.Helper()
	require.NoError(t, rdb.XClaimJustID(t.Context(), &redis.XClaimArgs{Stream: stream, Group: "g", Consumer: consumer, Messages: ids}).Err())
}

func TestDUP04_ALateAckLeavesWhatAnotherOwnsByNow(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "a", 10)
		a := recovery.NewGroup(rdb, topic, "g", "a")
		b := settled(t, rdb, topic, "b")
		taken, _ := sweep(t, b, topic, 4)
		theirs := entryIDs(taken)
		lost, err := a.Ack(t.Context(), topic, ids)
		require.NoError(t, err)
		require.Equal(t, theirs, lost)
		require.Equal(t, theirs, pendingIDs(t, rdb, topic, "b"))

		silence(t, rdb, topic, "b") // it dies before it is done
		c := settled(t, rdb, topic, "c")
		taken, _ = sweep(t, c, topic, 0)
		require.Equal(t, theirs, entryIDs(taken))
		lost, err = c.Ack(t.Context(), topic, theirs)
		require.NoError(t, err)
		require.Empty(t, lost)
		require.Empty(t, pendingIDs(t, rdb, topic, ""))
	})
}

func TestAckTakesIDsInAnyOrderAndRefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic, ids := abandon(t, rdb, "a", 12)
	a := recovery.NewGroup(rdb, topic, "g", "a")
	mixed := slices.Concat(ids[6:], ids[:6], ids[:3], []string{"1-1", "9999999999999999-0"})
	lost, err := a.Ack(t.Context(), topic, mixed)
	require.NoError(t, err)
	require.Empty(t, lost, "what is not pending is nobody's")
	require.Empty(t, pendingIDs(t, rdb, topic, ""))
	lost, err = a.Ack(t.Context(), topic, nil)
	require.NoError(t, err)
	require.Empty(t, lost)
	_, err = a.Ack(t.Context(), topic, []string{ids[0], "+"})
	require.ErrorIs(t, err, es.ErrInvalid)
	_, err = a.Ack(t.Context(), freshTopic(), ids)
	require.True(t, redis.HasErrorPrefix(err, "NOGROUP"), "%v", err)
}

// Ids are put in order as numbers: 9-10 comes after 9-9.
func TestAckOrdersIDsAsNumbers(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	ids := []string{"9-9", "9-10", "10-1", "100-0"}
	for _, id := range ids {
		require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, ID: id, Values: []string{"msg", "{}"}}).Err())
	}
	readAs(t, rdb, topic, "g", "a", 4)
	lost, err := recovery.NewGroup(rdb, topic, "g", "a").Ack(t.Context(), topic, ids)
	require.NoError(t, err)
	require.Empty(t, lost)
	require.Empty(t, pendingIDs(t, rdb, topic, ""))
}

// A batch that holds strays far apart is not looked up by its whole range.
func TestAckOfStraysAmongManyHeldEntries(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "a", 3000)
		a := recovery.NewGroup(rdb, topic, "g", "a")
		claimBy(t, rdb, topic, "b", ids[1500])
		strays := []string{ids[0], ids[3], ids[1499], ids[1500], ids[2999]}
		lost, err := a.Ack(t.Context(), topic, strays)
		require.NoError(t, err)
		require.Equal(t, ids[1500:1501], lost)
		require.Len(t, pendingIDs(t, rdb, topic, ""), 2996)
		require.NotContains(t, pendingIDs(t, rdb, topic, ""), ids[2999])
	})
}

func TestSCR04_BatchesOfAnySizeAreAcknowledgedAndGivenBack(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for _, n := range []int{1, 499, 500, 501, 7_999, 8_001, 50_000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			topic, ids := abandon(t, rdb, "a", n)
			a := recovery.NewGroup(rdb, topic, "g", "a")
			require.NoError(t, a.GiveBack(t.Context(), topic, ids))
			for _, p := range pendingOf(t, rdb, topic, "a") {
				require.Zero(t, p.RetryCount)
			}
			lost, err := a.Ack(t.Context(), topic, ids)
			require.NoError(t, err)
			require.Empty(t, lost)
			require.Empty(t, pendingIDs(t, rdb, topic, ""))
		})
	}
}

func TestAckForgetsFailures(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "a", 4)
		a := recovery.NewGroup(rdb, topic, "g", "a")
		for _, id := range ids[:3] {
			_, _, err := a.Fail(t.Context(), topic, id, errors1)
			require.NoError(t, err)
		}
		claimBy(t, rdb, topic, "b", ids[2])
		lost, err := a.Ack(t.Context(), topic, ids)
		require.NoError(t, err)
		require.Equal(t, ids[2:3], lost)
		require.Len(t, failuresOf(t, rdb, topic), 1)
		require.Contains(t, failuresOf(t, rdb, topic), ids[2], "it is another's, and failed before")
	})
}

// While memory is full an ack works, as XACK does.
func TestFAIL04_AnAckWorksWhileMemoryIsFull(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	topic, ids := abandon(t, rdb, "a", 3)
	a := recovery.NewGroup(rdb, topic, "g", "a")
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, _, err := a.Fail(t.Context(), topic, ids[0], errors1)
	require.ErrorIs(t, err, es.ErrOutOfMemory)
	require.Empty(t, failuresOf(t, rdb, topic), "a full memory spends no attempt")
	lost, err := a.Ack(t.Context(), topic, ids[1:])
	require.NoError(t, err)
	require.Empty(t, lost)
	require.Equal(t, ids[:1], pendingIDs(t, rdb, topic, ""))
}

// What a wrong key makes impossible is refused before anything is done.
func TestAWrongTypeOfFailuresStopsAnAckBeforeItIsHalfDone(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic, ids := abandon(t, rdb, "a", 3)
	require.NoError(t, rdb.Set(t.Context(), rediskey.Failed(topic, "g"), "no hash", 0).Err())
	_, err := recovery.NewGroup(rdb, topic, "g", "a").Ack(t.Context(), topic, ids)
	require.ErrorIs(t, err, es.ErrCorrupt)
	require.Equal(t, ids, pendingIDs(t, rdb, topic, ""))
}

func TestAnAckWhoseReplyWasLostIsDoneOnce(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	topic, ids := abandon(t, rdb, "a", 3)
	a := recovery.NewGroup(rdb, topic, "g", "a")
	_, err := a.Ack(t.Context(), topic, ids[:1]) // the server knows the script now
	require.NoError(t, err)
	p.DropReply("EVALSHA " + lua.AckEntries.Hash())
	lost, err := a.Ack(t.Context(), topic, ids[1:])
	require.NoError(t, err)
	require.Zero(t, p.Pending(), "the client has sent it twice")
	require.Empty(t, lost, "they had gone to nobody")
	require.Empty(t, pendingIDs(t, rdb, topic, ""))
}

func TestRaiseCountsOneMoreDelivery(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "a", 3)
		a := recovery.NewGroup(rdb, topic, "g", "a")
		for want := 2; want < 5; want++ {
			n, err := a.Raise(t.Context(), topic, ids[1])
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		for i, p := range pendingOf(t, rdb, topic, "a") {
			require.EqualValues(t, []int{1, 4, 1}[i], p.RetryCount, "one at a time")
		}
		claimBy(t, rdb, topic, "b", ids[1])
		_, err := a.Raise(t.Context(), topic, ids[1])
		require.ErrorIs(t, err, recovery.ErrNotOwner)
		require.EqualValues(t, 4, pendingOf(t, rdb, topic, "b")[0].RetryCount)
		require.NoError(t, rdb.XDel(t.Context(), topic, ids[2]).Err())
		_, err = a.Raise(t.Context(), topic, ids[2])
		if err == nil { // 6.2 claims what is gone
			n, err := a.Raise(t.Context(), topic, ids[2])
			require.NoError(t, err)
			require.Equal(t, 3, n)
		} else {
			require.ErrorIs(t, err, recovery.ErrNotOwner)
		}
	})
}

func TestGivenBackEntriesHaveSpentNoDeliveryAndStayIdle(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "a", 4)
		a := recovery.NewGroup(rdb, topic, "g", "a")
		_, err := a.Raise(t.Context(), topic, ids[1])
		require.NoError(t, err)
		claimBy(t, rdb, topic, "b", ids[2])
		age(t, rdb, topic, "a", time.Hour, ids[0], ids[1])
		require.NoError(t, a.GiveBack(t.Context(), topic, ids))
		require.NoError(t, a.GiveBack(t.Context(), topic, ids[:1]), "never below none")
		pending := pendingOf(t, rdb, topic, "")
		for i, want := range []struct {
			owner string
			count int64
			idle  time.Duration
		}{{"a", 0, time.Hour}, {"a", 1, time.Hour}, {"b", 1, 0}, {"a", 0, 0}} {
			require.Equal(t, want.owner, pending[i].Consumer)
			require.Equal(t, want.count, pending[i].RetryCount)
			require.InDelta(t, want.idle.Seconds(), pending[i].Idle.Seconds(), 60)
		}
		require.NoError(t, a.Renew(t.Context()))
		require.NoError(t, a.Leave(t.Context()))
		taken, _ := sweep(t, settled(t, rdb, topic, "c"), topic, 0)
		require.Equal(t, []string{ids[0], ids[1], ids[3]}, entryIDs(taken), "whoever was asked to leave lets go at once")
		require.Equal(t, 0, taken[0].Deliveries)
	})
}
