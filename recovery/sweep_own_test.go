package recovery_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/recovery"
)

// own is a settled consumer "a" whose n entries are an hour idle.
func own(t testing.TB, rdb redis.UniversalClient, n int) (g *recovery.Group, ids []string) {
	t.Helper()
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	publish(t, rdb, topic, n)
	ids = readAs(t, rdb, topic, "g", "a", n)
	age(t, rdb, topic, "a", time.Hour, ids...)
	return settled(t, rdb, topic, "a"), ids
}

func TestLOST01_EntriesOfALostReplyAreFoundByTheirLivingOwner(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	ids := publish(t, rdb, topic, 4)
	a := recovery.NewGroup(rdb, topic, "g", "a")
	a.Lease = 300 * time.Millisecond
	require.NoError(t, a.Renew(t.Context()))
	p.DropReply("XREADGROUP")
	read := time.Now()
	held := readAs(t, rdb, topic, "g", "a", 2) // the client sends it again
	require.Equal(t, ids[2:], held)
	var found []recovery.Entry
	require.Eventually(t, func() bool {
		require.NoError(t, a.Renew(t.Context()))
		found, _ = sweepHolding(t, a, topic, 0, func(id string) bool { return slices.Contains(held, id) })
		return len(found) > 0
	}, patience, pause)
	require.GreaterOrEqual(t, time.Since(read), a.Lease, "a reply may be on its way that long")
	require.Equal(t, ids[:2], entryIDs(found))
	require.Equal(t, "a", found[0].Owner)
	lost, err := a.Ack(t.Context(), topic, ids)
	require.NoError(t, err)
	require.Empty(t, lost)
	require.Empty(t, pendingIDs(t, rdb, topic, ""))
}

// An entry that is old, since this process stood still between the read and its
// registration, is held by the time of the second look.
func TestOwnEntriesAreFoundWhereTwoLooksRunningDoNotSeeThemHeld(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, ids := own(t, rdb, 5)
		found, _ := sweepHolding(t, a, a.Topic, 0, none)
		require.Empty(t, found, "one look is not enough")
		found, swept := sweepHolding(t, a, a.Topic, 0, func(id string) bool { return id == ids[0] })
		require.Equal(t, ids[1:], entryIDs(found))
		require.Equal(t, 4, swept.Found)
		require.Zero(t, swept.Claimed)
		require.False(t, swept.Waits)
		for range 3 {
			found, _ = sweepHolding(t, a, a.Topic, 0, all)
			require.Empty(t, found, "what is held is never found")
		}
	})
}

func TestOwnEntriesThatWereReadJustNowAreNotFound(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	publish(t, rdb, topic, 3)
	a := alive(t, rdb, topic, "a")
	ids := readAs(t, rdb, topic, "g", "a", 3)
	for range 5 {
		found, _ := sweepHolding(t, a, topic, 0, none)
		require.Empty(t, found)
	}
	age(t, rdb, topic, "a", 2*time.Hour, ids[1])
	found, _ := sweepHolding(t, a, topic, 0, none)
	require.Empty(t, found)
	found, _ = sweepHolding(t, a, topic, 0, none)
	require.Equal(t, ids[1:2], entryIDs(found))
}

// What was acknowledged or claimed since the first look is left alone.
func TestOwnEntriesThatWentElsewhereSinceTheFirstLookAreNotFound(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, ids := own(t, rdb, 4)
		sweepHolding(t, a, a.Topic, 0, none)
		require.NoError(t, rdb.XAck(t.Context(), a.Topic, "g", ids[0]).Err())
		claimBy(t, rdb, a.Topic, "b", ids[1])
		require.NoError(t, rdb.XDel(t.Context(), a.Topic, ids[2]).Err())
		found, swept := sweepHolding(t, a, a.Topic, 0, none)
		require.Equal(t, ids[3:], entryIDs(found))
		require.Equal(t, ids[2:3], swept.Gone)
		require.Equal(t, ids[1:2], pendingIDs(t, rdb, a.Topic, "b"))
	})
}

func TestManyOwnEntriesAreFoundInPages(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	a, ids := own(t, rdb, 2500)
	seen := map[string]bool{}
	for n := 0; len(seen) < len(ids); n++ {
		require.Less(t, n, 20)
		found, swept := sweepHolding(t, a, a.Topic, 300, func(id string) bool { return seen[id] })
		require.LessOrEqual(t, len(found), 300)
		for _, id := range entryIDs(found) {
			require.False(t, seen[id])
			seen[id] = true
		}
		require.Empty(t, swept.Gone)
	}
}

// Where an answer is lost after the claim, the entries are this consumer's, and the next
// sweep finds them.
func TestClaimedEntriesThatCouldNotBeReadAreFoundByTheNextSweep(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	o := *rdb.Options()
	o.MaxRetries = -1
	once := redis.NewClient(&o)
	t.Cleanup(func() { _ = once.Close() })
	topic, ids := abandon(t, rdb, "dead", 3)
	a := settled(t, once, topic, "a")
	p.DropReply("XRANGE")
	_, err := a.Sweep(t.Context(), topic, 0, none, func([]recovery.Entry) { t.Error("nothing could be read") })
	require.Error(t, err)
	require.Equal(t, ids, pendingIDs(t, rdb, topic, "a"))
	found, swept := sweepHolding(t, a, topic, 0, none)
	require.Equal(t, ids, entryIDs(found))
	require.Equal(t, 3, swept.Found)
}

// A claim whose own reply was lost leaves entries that nobody knows of.
func TestAClaimWhoseReplyWasLostIsFoundToo(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	first, _ := abandon(t, rdb, "dead", 1)
	sweep(t, settled(t, rdb, first, "a"), first, 0) // the server knows the script now
	topic, ids := abandon(t, rdb, "dead", 3)
	a := settled(t, rdb, topic, "a")
	p.DropReply("EVALSHA " + lua.ClaimEntries.Hash())
	taken, _ := sweep(t, a, topic, 0)
	require.Empty(t, taken, "sent again, it finds nothing")
	require.Zero(t, p.Pending())
	require.Equal(t, ids, pendingIDs(t, rdb, topic, "a"))
	require.Eventually(t, func() bool { taken, _ = sweepHolding(t, a, topic, 0, none); return len(taken) > 0 }, patience, pause)
	require.Equal(t, ids, entryIDs(taken))
}

func TestDEL10_IDsThatVanishWithARestartAreDropped(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "appendonly yes", "appendfsync always", "aof-use-rdb-preamble no")
	rdb := server.Client(t)
	a, ids := own(t, rdb, 3)
	found, _ := sweepHolding(t, a, a.Topic, 0, none) // it will look for all three again
	require.Empty(t, found)
	require.NoError(t, rdb.XDel(t.Context(), a.Topic, ids[:2]...).Err())
	require.NoError(t, rdb.BgRewriteAOF(t.Context()).Err())
	require.Eventually(t, func() bool {
		info, err := rdb.InfoMap(t.Context(), "persistence").Result()
		return err == nil && info["Persistence"]["aof_rewrite_in_progress"] == "0" && info["Persistence"]["aof_rewrite_scheduled"] == "0"
	}, patience, pause)
	server.Restart(t)
	require.Eventually(t, func() bool { return rdb.Ping(t.Context()).Err() == nil }, patience, pause)
	require.Equal(t, ids[2:], pendingIDs(t, rdb, a.Topic, "a"), "the server has dropped two by itself")
	found, swept := sweepHolding(t, a, a.Topic, 0, none)
	require.Equal(t, ids[2:], entryIDs(found))
	require.Empty(t, swept.Gone)
}

func TestASweepThatTakesNothingMoreFailsWithoutForgettingWhatItFound(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	o := *rdb.Options()
	o.MaxRetries = -1
	once := redis.NewClient(&o)
	t.Cleanup(func() { _ = once.Close() })
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	publish(t, rdb, topic, 3)
	ids := readAs(t, rdb, topic, "g", "a", 3)
	age(t, rdb, topic, "a", time.Hour, ids...)
	a := settled(t, once, topic, "a")
	sweepHolding(t, a, topic, 0, none)
	p.DropReply("XRANGE")
	_, err := a.Sweep(t.Context(), topic, 0, none, func([]recovery.Entry) {})
	require.Error(t, err)
	require.NotErrorIs(t, err, errors1)
	require.Error(t, errors.Unwrap(err))
	found, _ := sweepHolding(t, a, topic, 0, none)
	require.Equal(t, ids, entryIDs(found), "each once")
}
