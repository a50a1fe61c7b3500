package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestASweepTakesOverFromTheDeadAndLeavesTheLiving(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		publish(t, rdb, topic, 10)
		for _, name := range []string{"alive", "left", "passed", "unknown", "a"} {
			readAs(t, rdb, topic, "g", name, 2)
		}
		lease(t, rdb, topic, "g", "alive", time.Hour)
		lease(t, rdb, topic, "g", "left", 0)
		silence(t, rdb, topic, "passed")
		a := settled(t, rdb, topic, "a")
		taken, swept := sweep(t, a, topic, 0)
		require.Equal(t, recovery.Swept{Claimed: 4, Looked: true, First: swept.First}, swept)
		owners := map[string]int{}
		for _, e := range taken {
			owners[e.Owner]++
			require.Equal(t, 1, e.Deliveries, "a claim keeps the count")
			require.Equal(t, recovery.Fields{"msg", "{}"}, e.Fields)
		}
		require.Equal(t, map[string]int{"left": 2, "passed": 2}, owners)
		for name, want := range map[string]int{"alive": 2, "left": 0, "passed": 0, "unknown": 2, "a": 6} {
			require.Len(t, pendingIDs(t, rdb, topic, name), want, name)
		}
		taken, swept = sweep(t, a, topic, 0)
		require.Empty(t, taken)
		require.Equal(t, recovery.Swept{Looked: true, First: swept.First}, swept)
	})
}

func TestAClaimKeepsCountsFieldsAndFailures(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, id := entryOf(t, rdb, hostile)
		for range 6 {
			_, err := a.Raise(t.Context(), a.Topic, id)
			require.NoError(t, err)
		}
		_, first, err := a.Fail(t.Context(), a.Topic, id, errors1)
		require.NoError(t, err)
		silence(t, rdb, a.Topic, "a")
		taken, _ := sweep(t, settled(t, rdb, a.Topic, "b"), a.Topic, 0)
		require.Equal(t, []recovery.Entry{{ID: id, Fields: hostile, Deliveries: 7, Failures: 1, First: first, Cause: "the handler's error", Owner: "a"}}, taken)
		require.EqualValues(t, 7, pendingOf(t, rdb, a.Topic, "b")[0].RetryCount)
	})
}

func TestLOST03_NoEntryIsEverOutsideTheGroup(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "dead", 10)
		a := settled(t, rdb, topic, "a")
		handled := map[string]bool{}
		for len(handled) < 10 {
			taken, swept := sweep(t, a, topic, 3)
			require.LessOrEqual(t, len(taken), 3)
			require.NotEmpty(t, taken)
			require.Equal(t, len(handled)+len(taken) < 10, swept.More)
			require.Equal(t, 10, len(handled)+len(pendingIDs(t, rdb, topic, "")))
			lost, err := a.Ack(t.Context(), topic, entryIDs(taken))
			require.NoError(t, err)
			require.Empty(t, lost)
			for _, id := range entryIDs(taken) {
				handled[id] = true
			}
			require.Contains(t, consumersOf(t, rdb, topic, "g"), "dead", "only the reaper removes it")
		}
		for _, id := range ids {
			require.True(t, handled[id])
		}
	})
}

func TestLOST07_AFrozenConsumersEntryIsHandledByAnotherOnceItsLeaseHasPassed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		publish(t, rdb, topic, 1)
		frozen, living := recovery.NewGroup(rdb, topic, "g", "frozen"), recovery.NewGroup(rdb, topic, "g", "living")
		frozen.Lease, living.Lease = 500*time.Millisecond, 500*time.Millisecond
		require.NoError(t, frozen.Renew(t.Context()))
		renewed := time.Now()
		ids := readAs(t, rdb, topic, "g", "frozen", 1)
		var taken []recovery.Entry
		require.Eventually(t, func() bool {
			require.NoError(t, living.Renew(t.Context()))
			taken, _ = sweep(t, living, topic, 0)
			return len(taken) > 0
		}, patience, pause)
		require.Greater(t, time.Since(renewed), frozen.Lease)
		require.Equal(t, ids, entryIDs(taken))
		lost, err := frozen.Ack(t.Context(), topic, ids)
		require.NoError(t, err)
		require.Equal(t, ids, lost)
		require.NoError(t, frozen.Renew(t.Context()))
		taken, swept := sweep(t, frozen, topic, 0)
		require.Empty(t, taken)
		require.False(t, swept.Waits, "the living one is no candidate")
		require.Equal(t, ids, pendingIDs(t, rdb, topic, "living"))
	})
}

func TestDLQ06_ALongHandlerCountsAsOneDelivery(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		publish(t, rdb, topic, 1)
		slow := alive(t, rdb, topic, "slow")
		ids := readAs(t, rdb, topic, "g", "slow", 1)
		peer := settled(t, rdb, topic, "peer")
		for range 20 {
			age(t, rdb, topic, "slow", 24*time.Hour, ids...)
			require.NoError(t, slow.Renew(t.Context()))
			taken, _ := sweep(t, slow, topic, 0)
			require.Empty(t, taken)
			taken, _ = sweep(t, peer, topic, 0)
			require.Empty(t, taken)
		}
		require.EqualValues(t, 1, pendingOf(t, rdb, topic, "slow")[0].RetryCount)
	})
}

func TestDUP11_NoCommandCarriesAClientsClock(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic, ids := abandon(t, rdb, "dead", 6)
	r := &recorder{}
	rdb.AddHook(r)
	g := recovery.NewGroup(rdb, topic, "g", "a")
	g.SharedWithWow, g.Lease = true, time.Millisecond
	require.NoError(t, g.Renew(t.Context()))
	lease(t, rdb, topic, "g", "a", time.Hour)
	var taken []recovery.Entry
	require.Eventually(t, func() bool { taken, _ = sweep(t, g, topic, 0); return len(taken) > 0 }, patience, pause)
	r.reset()
	_, err := g.Raise(t.Context(), topic, ids[0])
	require.NoError(t, err)
	_, _, err = g.Fail(t.Context(), topic, ids[0], errors1)
	require.NoError(t, err)
	require.NoError(t, g.Bury(t.Context(), topic, ids[0], recovery.Letter{}))
	require.NoError(t, g.GiveBack(t.Context(), topic, ids))
	_, err = g.Ack(t.Context(), topic, ids)
	require.NoError(t, err)
	stood := deadline(t, rdb, topic, "a")
	fresh := recovery.NewGroup(rdb, topic, "g", "a")
	require.NoError(t, fresh.Renew(t.Context()))
	sweepHolding(t, g, topic, 0, none)
	require.NoError(t, g.Leave(t.Context()))
	require.NotZero(t, stood)
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NotEmpty(t, r.sent)
	for _, args := range r.sent {
		for _, arg := range args {
			for _, unit := range []int64{now.Unix(), now.UnixMilli(), now.UnixMicro()} {
				var n int64
				if _, err := fmt.Sscanf(fmt.Sprint(arg), "%d", &n); err == nil && !slices.Contains(ids, fmt.Sprint(arg)) {
					require.NotEqual(t, unit/10_000, n/10_000, "%v", args)
				}
			}
		}
	}
}

func TestDUP12_IdleTimesSayNothingOfConsumersWithALease(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		publish(t, rdb, topic, 6)
		living := readAs(t, rdb, topic, "g", "living", 3)
		dead := readAs(t, rdb, topic, "g", "dead", 3)
		lease(t, rdb, topic, "g", "living", time.Hour)
		silence(t, rdb, topic, "dead")
		stamp := func(consumer string, at int64, ids []string) {
			for _, id := range ids {
				require.NoError(t, rdb.Do(t.Context(), "XCLAIM", topic, "g", consumer, 0, id, "TIME", at, "JUSTID").Err())
			}
		}
		stamp("living", serverTime(t, rdb, -10*24*time.Hour), living) // the clock went forward
		stamp("dead", serverTime(t, rdb, time.Hour), dead)            // and back
		taken, _ := sweep(t, settled(t, rdb, topic, "a"), topic, 0)
		require.Equal(t, dead, entryIDs(taken))
		require.Equal(t, living, pendingIDs(t, rdb, topic, "living"))
	})
}

func TestASweepSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	g := alive(t, rdb, freshTopic(), "a")
	_, err := g.Sweep(t.Context(), g.Topic, 0, none, nil)
	require.True(t, redis.HasErrorPrefix(errors.Unwrap(err), "NOGROUP"), "%v", err)
	require.ErrorContains(t, err, "sweep by a in group g of "+g.Topic)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = g.Sweep(done, g.Topic, 0, none, nil)
	require.ErrorIs(t, err, context.Canceled)
}
