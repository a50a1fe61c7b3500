package recovery_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// kotlin is a topic whose n entries were read by a consumer without a deadline, and a
// settled consumer "a".
func kotlin(t testing.TB, rdb redis.UniversalClient, n int) (a *recovery.Group, ids []string) {
	t.Helper()
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	publish(t, rdb, topic, n)
	ids = readAs(t, rdb, topic, "g", "kotlin", n)
	return settled(t, rdb, topic, "a"), ids
}

func TestDUP09_AConsumerWithoutADeadlineIsJudgedAsAKotlinOne(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, ids := kotlin(t, rdb, 3)
		key := rediskey.WowLease(a.Topic, "g", "kotlin")
		refuse := func(why string) {
			taken, swept := sweep(t, a, a.Topic, 0)
			require.Empty(t, taken, why)
			require.False(t, swept.Waits)
		}
		refuse("not idle for five minutes")
		age(t, rdb, a.Topic, "kotlin", recovery.DefaultMinIdleForeign-time.Minute, ids...)
		refuse("not quite idle for five minutes")
		age(t, rdb, a.Topic, "kotlin", time.Hour, ids[0], ids[2])
		require.NoError(t, rdb.Set(t.Context(), key, "its token", time.Hour).Err())
		refuse("it holds Wow's lease")
		require.NoError(t, rdb.Del(t.Context(), key).Err())
		taken, _ := sweep(t, a, a.Topic, 0)
		require.Equal(t, []string{ids[0], ids[2]}, entryIDs(taken), "those that are idle")
		require.Equal(t, "kotlin", taken[0].Owner)
		a.MinIdleForeign = time.Second
		taken, _ = sweep(t, a, a.Topic, 0)
		require.Equal(t, ids[1:2], entryIDs(taken))
	})
}

// A living consumer whose deadline was lost has it again before it counts as dead, and
// knows that peers may have claimed.
func TestDUP09_ALivingConsumerThatLostItsDeadlineIsNotRobbed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		publish(t, rdb, topic, 4)
		c := alive(t, rdb, topic, "c")
		readAs(t, rdb, topic, "g", "c", 2)
		readAs(t, rdb, topic, "g", "left", 2)
		a := settled(t, rdb, topic, "a")
		require.NoError(t, rdb.ZRem(t.Context(), rediskey.Leases(topic, "g"), "c").Err())
		taken, _ := sweep(t, a, topic, 0)
		require.Empty(t, taken)
		require.NoError(t, c.Renew(t.Context()))
		taken, _ = sweep(t, a, topic, 0)
		require.Empty(t, taken)
		require.Len(t, pendingIDs(t, rdb, topic, "c"), 2)
		lease(t, rdb, topic, "g", "left", 0)
		taken, swept := sweep(t, c, topic, 0)
		require.Empty(t, taken, "it renewed late")
		require.True(t, swept.Waits)
	})
}

// The lease is looked at again just before the claim, and what the server will not tell
// counts as alive.
func TestAKotlinConsumerIsClaimedFromOnlyWhereItsLeaseIsKnownToBeMissing(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	a, ids := kotlin(t, rdb, 2)
	age(t, rdb, a.Topic, "kotlin", time.Hour, ids...)
	key := rediskey.WowLease(a.Topic, "g", "kotlin")
	r := &recorder{before: func(command string) {
		if command == "xpending" {
			require.NoError(t, server.Client(t).Set(t.Context(), key, "it is back", time.Hour).Err())
		}
	}}
	rdb.AddHook(r)
	taken, _ := sweep(t, a, a.Topic, 0)
	require.Empty(t, taken)
	require.Equal(t, 2, r.count("exists"))
	require.NoError(t, rdb.Del(t.Context(), key).Err())

	require.NoError(t, rdb.Do(t.Context(), "ACL", "SETUSER", "blind", "on", "nopass", "~*", "+@all", "-exists").Err())
	o := server.Options()
	o.Username, o.Password = "blind", "any"
	blind := redis.NewClient(o)
	t.Cleanup(func() { _ = blind.Close() })
	b := settled(t, blind, a.Topic, "b")
	taken, _ = sweep(t, b, a.Topic, 0)
	require.Empty(t, taken)
	require.Equal(t, ids, pendingIDs(t, server.Client(t), a.Topic, "kotlin"))
}

// An entry may have been delivered anew between the look and the claim.
func TestAKotlinConsumersEntryThatIsNoLongerIdleIsNotClaimed(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	a, ids := kotlin(t, rdb, 2)
	age(t, rdb, a.Topic, "kotlin", time.Hour, ids...)
	looks := 0
	rdb.AddHook(&recorder{before: func(command string) {
		if command == "exists" {
			if looks++; looks == 2 {
				age(t, redistest.Shared(t).Client(t), a.Topic, "kotlin", 0, ids[0])
			}
		}
	}})
	taken, swept := sweep(t, a, a.Topic, 0)
	require.Equal(t, ids[1:], entryIDs(taken))
	require.Empty(t, swept.Gone)
	require.Equal(t, 2, looks)
}

func TestLOST05_WhatCannotBeClaimedYetHidesNothingBehindIt(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, ids := kotlin(t, rdb, 2500)
		last := ids[2400]
		age(t, rdb, a.Topic, "kotlin", time.Hour, last)
		var taken []recovery.Entry
		for range 3 { // 1,000 entries each
			more, swept := sweep(t, a, a.Topic, 100)
			require.False(t, swept.More)
			taken = append(taken, more...)
		}
		require.Equal(t, []string{last}, entryIDs(taken))
		age(t, rdb, a.Topic, "kotlin", time.Hour, ids[0])
		require.Eventually(t, func() bool { taken, _ = sweep(t, a, a.Topic, 100); return len(taken) > 0 }, patience, pause)
		require.Equal(t, ids[:1], entryIDs(taken), "it begins anew at the end")
	})
}

// The cost of a look does not depend on what the living hold.
func TestBIG01_LOST05_ASweepCostsTheSameWhateverTheLivingHold(t *testing.T) {
	t.Parallel()
	var costs []map[string]int64
	for _, n := range []int{100, 100_000} {
		rdb := redistest.Standalone(t).Client(t)
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		publish(t, rdb, topic, n+1)
		readAs(t, rdb, topic, "g", "living", n)
		ids := readAs(t, rdb, topic, "g", "dead", 1)
		lease(t, rdb, topic, "g", "living", time.Hour)
		a := settled(t, rdb, topic, "a")
		require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
		taken, swept := sweep(t, a, topic, 0) // nobody is known to be dead
		require.Empty(t, taken)
		require.Equal(t, recovery.Swept{Looked: true, First: swept.First}, swept)
		silence(t, rdb, topic, "dead")
		r := &recorder{}
		rdb.AddHook(r)
		taken, _ = sweep(t, a, topic, 0)
		require.Equal(t, ids, entryIDs(taken), "behind all that the living one holds")
		for _, args := range r.sent {
			require.NotContains(t, args, "IDLE")
		}
		costs = append(costs, callsOf(t, rdb))
	}
	require.Equal(t, costs[0], costs[1])
	require.NotEmpty(t, costs[0])
	require.Less(t, costs[0]["xpending"], int64(6))
}

// callsOf is how often each command ran since the statistics were reset.
func callsOf(t testing.TB, rdb redis.UniversalClient) map[string]int64 {
	t.Helper()
	info, err := rdb.InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	calls := map[string]int64{}
	for _, section := range info {
		for name, stats := range section {
			var n int64
			_, err := fmt.Sscanf(stats, "calls=%d", &n)
			require.NoError(t, err)
			calls[name[len("cmdstat_"):]] = n
		}
	}
	return calls
}
