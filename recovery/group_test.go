package recovery_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
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

func deadline(t testing.TB, rdb redis.UniversalClient, topic, consumer string) int64 {
	t.Helper()
	score, err := rdb.ZScore(t.Context(), rediskey.Leases(topic, "g"), consumer).Result()
	require.NoError(t, err)
	return int64(score)
}

func TestALeaseIsADeadlineByTheServersClockUntilItsConsumerLeaves(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		g := recovery.NewGroup(rdb, topic, "g", "a")
		for _, d := range []time.Duration{recovery.DefaultLease, time.Hour, time.Minute} {
			if d != recovery.DefaultLease {
				g.Lease = d
			}
			before := serverTime(t, rdb, d)
			require.NoError(t, g.Renew(t.Context()))
			require.GreaterOrEqual(t, deadline(t, rdb, topic, "a"), before)
			require.LessOrEqual(t, deadline(t, rdb, topic, "a"), serverTime(t, rdb, d))
		}
		require.NoError(t, g.Leave(t.Context()))
		require.Zero(t, deadline(t, rdb, topic, "a"))
		require.ErrorIs(t, g.Renew(t.Context()), recovery.ErrLeft)
		require.Zero(t, deadline(t, rdb, topic, "a"))
		require.NoError(t, g.Leave(t.Context()))
	})
}

// A renewal that was begun before a leave never undoes it.
func TestARenewalAndALeaveWaitForEachOther(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	g := alive(t, rdb, "topic", "a")
	p.Delay(100 * time.Millisecond)
	renewed := make(chan error, 1)
	began := p.Count("EVALSHA")
	go func() { renewed <- g.Renew(t.Context()) }()
	require.Eventually(t, func() bool { return p.Count("EVALSHA") > began }, patience, time.Millisecond)
	hasty, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Leave(hasty), context.Canceled, "it does not wait longer than it may")
	require.NoError(t, g.Leave(t.Context()))
	require.NoError(t, <-renewed)
	require.Zero(t, deadline(t, rdb, "topic", "a"))
}

func TestOneWhoLeftClaimsNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic, _ := abandon(t, rdb, "dead", 1)
	g := settled(t, rdb, topic, "a")
	require.NoError(t, g.Leave(t.Context()))
	lease(t, rdb, topic, "g", "a", time.Hour) // whoever wrote this
	taken, swept := sweep(t, g, topic, 0)
	require.Empty(t, taken)
	require.True(t, swept.Waits)
}

func TestDUP06_AClaimerThatRenewedLateClaimsNothingForAWholeLease(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "dead", 3)
		lease(t, rdb, topic, "g", "gone", 0)
		g := settled(t, rdb, topic, "a")
		silence(t, rdb, topic, "a")
		taken, swept := sweep(t, g, topic, 0)
		require.Empty(t, taken, "its own deadline has passed")
		require.True(t, swept.Waits)

		g.Lease = 300 * time.Millisecond
		late := time.Now()
		require.NoError(t, g.Renew(t.Context()))
		var first time.Time
		require.Eventually(t, func() bool {
			require.NoError(t, g.Renew(t.Context()))
			var swept recovery.Swept
			taken, swept = sweep(t, g, topic, 0)
			first = time.Now()
			require.Equal(t, len(taken) == 0, swept.Waits)
			return len(taken) > 0
		}, patience, pause)
		require.GreaterOrEqual(t, first.Sub(late), g.Lease)
		require.ElementsMatch(t, ids, entryIDs(taken))
	})
}

// The reply to a renewal that found the deadline passed may itself be lost; the client
// sends it again, and the second finds nothing wrong.
func TestDUP06_ALateRenewalWhoseReplyIsLostIsLateAllTheSame(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	topic, ids := abandon(t, rdb, "dead", 3)
	g := recovery.NewGroup(rdb, topic, "g", "a")
	g.Lease = time.Millisecond
	require.NoError(t, g.Renew(t.Context()))
	stood := deadline(t, rdb, topic, "a")
	require.Eventually(t, func() bool { return serverTime(t, rdb, 0) > stood }, patience, time.Millisecond)
	g.Lease = time.Hour
	p.DropReply("EVALSHA " + lua.RenewLease.Hash())
	require.NoError(t, g.Renew(t.Context()))
	require.Zero(t, p.Pending())
	taken, swept := sweep(t, g, topic, 0)
	require.Empty(t, taken)
	require.True(t, swept.Waits)
	require.Equal(t, ids, pendingIDs(t, rdb, topic, "dead"))
}

// A failover may lose the last renewals; peers have seen the deadline pass that was left.
func TestDUP06_ARenewalThatFindsAnOlderDeadlineIsLate(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "left", 3)
		lease(t, rdb, topic, "g", "left", 0)
		g := alive(t, rdb, topic, "a")
		silence(t, rdb, topic, "a")
		require.NoError(t, g.Renew(t.Context()))
		taken, swept := sweep(t, g, topic, 0)
		require.Empty(t, taken)
		require.True(t, swept.Waits)
		require.Equal(t, ids, pendingIDs(t, rdb, topic, "left"))
	})
}

func TestDUP06_OneFailedRenewalIsNoLoss(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	topic, ids := abandon(t, rdb, "dead", 3)
	known := alive(t, rdb, topic, "a")
	p.Cut()
	require.ErrorIs(t, known.Renew(t.Context()), es.ErrUncertain)
	p.Heal()
	require.NoError(t, known.Renew(t.Context()))
	lease(t, rdb, topic, "g", "dead", 0)
	taken, _ := sweep(t, known, topic, 0)
	require.ElementsMatch(t, ids, entryIDs(taken))
}

// An outage may be what silenced the others; those who come right after it wait for them.
func TestANewConsumerClaimsOnlyFromWhoHasLeft(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, silent := abandon(t, rdb, "silent", 3)
		publish(t, rdb, topic, 2)
		gone := readAs(t, rdb, topic, "g", "gone", 2)
		lease(t, rdb, topic, "g", "gone", 0)
		g := recovery.NewGroup(rdb, topic, "g", "a")
		g.Lease = 200 * time.Millisecond
		began := time.Now()
		require.NoError(t, g.Renew(t.Context()))
		lease(t, rdb, topic, "g", "a", time.Hour)
		taken, swept := sweep(t, g, topic, 0)
		require.ElementsMatch(t, gone, entryIDs(taken))
		require.True(t, swept.Waits)
		require.Eventually(t, func() bool { taken, _ = sweep(t, g, topic, 0); return len(taken) > 0 }, patience, pause)
		require.GreaterOrEqual(t, time.Since(began), g.Lease)
		require.ElementsMatch(t, silent, entryIDs(taken))
	})
}

func TestFAIL04_NothingIsClaimedWhileTheLeaseCannotBeRenewed(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	topic, ids := abandon(t, rdb, "dead", 3)
	g := settled(t, rdb, topic, "a")
	lease(t, rdb, topic, "g", "a", 300*time.Millisecond)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorIs(t, g.Renew(t.Context()), es.ErrOutOfMemory)
	stood := deadline(t, rdb, topic, "a")
	require.NotZero(t, stood)
	require.Eventually(t, func() bool { return serverTime(t, rdb, 0) > stood }, patience, pause)
	taken, swept := sweep(t, g, topic, 0)
	require.Empty(t, taken, "XCLAIM would have worked")
	require.True(t, swept.Waits)
	require.Equal(t, ids, pendingIDs(t, rdb, topic, "dead"))
	require.ErrorIs(t, g.Leave(t.Context()), es.ErrOutOfMemory, "its deadline has passed by itself")

	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	again := settled(t, rdb, topic, "b")
	taken, _ = sweep(t, again, topic, 0)
	require.ElementsMatch(t, ids, entryIDs(taken))
}

// goldenLease is a lease key that Wow has written.
type goldenLease struct{ Topic, Group, Consumer, Key string }

// goldenLeases are vectors written by Wow v8.10.10 (testdata/wow_leases.json).
func goldenLeases(t *testing.T) []goldenLease {
	t.Helper()
	f, err := os.Open("testdata/wow_leases.json")
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // only read
	var vectors []goldenLease
	require.NoError(t, json.NewDecoder(f).Decode(&vectors))
	require.Len(t, vectors, 3)
	return vectors
}

func TestInASharedGroupTheLeaseThatKotlinPeersSeeIsHeldToo(t *testing.T) {
	t.Parallel()
	for _, v := range goldenLeases(t) {
		rdb := redistest.Standalone(t).Client(t)
		g := recovery.NewGroup(rdb, v.Topic, v.Group, v.Consumer)
		g.Lease = time.Minute
		require.NoError(t, g.Renew(t.Context()))
		require.Zero(t, rdb.Exists(t.Context(), v.Key).Val(), "only where it is asked for")
		g.SharedWithWow = true
		require.NoError(t, rdb.Set(t.Context(), v.Key, "its predecessor's", time.Hour).Err())
		require.NoError(t, g.Renew(t.Context()), "the first takes it, as in Wow")
		token := rdb.Get(t.Context(), v.Key).Val()
		require.NotEqual(t, "its predecessor's", token)
		require.Len(t, token, len(rand.Text()))
		require.InDelta(t, time.Minute.Seconds(), rdb.PTTL(t.Context(), v.Key).Val().Seconds(), 30)
		require.NoError(t, g.Leave(t.Context()))
		require.Zero(t, rdb.Exists(t.Context(), v.Key).Val())
	}
}

func TestDUP06_WowsLeaseIsRenewedAndDroppedByItsHolderAlone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		key := rediskey.WowLease(topic, "g", "a")
		g := recovery.NewGroup(rdb, topic, "g", "a")
		g.Lease, g.SharedWithWow = time.Minute, true
		require.NoError(t, g.Renew(t.Context()))
		token := rdb.Get(t.Context(), key).Val()
		require.NoError(t, rdb.PExpire(t.Context(), key, time.Second).Err())
		require.NoError(t, g.Renew(t.Context()))
		require.Greater(t, rdb.PTTL(t.Context(), key).Val(), 30*time.Second)
		require.NoError(t, rdb.Del(t.Context(), key).Err())
		require.NoError(t, g.Renew(t.Context()), "it ran out and nobody took it")
		require.Equal(t, token, rdb.Get(t.Context(), key).Val())

		require.NoError(t, rdb.Set(t.Context(), key, "another's", 5*time.Second).Err())
		require.ErrorIs(t, g.Renew(t.Context()), recovery.ErrLeaseTaken)
		require.Equal(t, "another's", rdb.Get(t.Context(), key).Val())
		require.LessOrEqual(t, rdb.PTTL(t.Context(), key).Val(), 5*time.Second)
		require.NoError(t, g.Leave(t.Context()))
		require.Equal(t, "another's", rdb.Get(t.Context(), key).Val())
	})
}

// A full memory refuses SET and lets PEXPIRE through: the lease that is held stays.
func TestFAIL04_WowsLeaseOutlivesAFullMemory(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	g := recovery.NewGroup(rdb, "topic", "g", "a")
	g.Lease, g.SharedWithWow = time.Minute, true
	require.NoError(t, g.Renew(t.Context()))
	key := rediskey.WowLease("topic", "g", "a")
	require.NoError(t, rdb.PExpire(t.Context(), key, 5*time.Second).Err())
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorIs(t, g.Renew(t.Context()), es.ErrOutOfMemory)
	require.Greater(t, rdb.PTTL(t.Context(), key).Val(), 30*time.Second)
}
