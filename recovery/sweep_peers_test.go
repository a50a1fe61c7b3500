package recovery_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestCHURN05_TwoWorkersTakeOverFromTwentyInFewSweeps(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		publish(t, rdb, topic, 500)
		for i := range 20 {
			name := fmt.Sprintf("dead-%d", i)
			readAs(t, rdb, topic, "g", name, 25)
			silence(t, rdb, topic, name)
		}
		workers := []*recovery.Group{settled(t, rdb, topic, "a"), settled(t, rdb, topic, "b")}
		seen := map[string]bool{}
		sweeps := 0
		for ; len(seen) < 500; sweeps++ {
			require.Less(t, sweeps, 500/100+2)
			taken, _ := sweep(t, workers[sweeps%2], topic, 100)
			for _, id := range entryIDs(taken) {
				require.False(t, seen[id])
				seen[id] = true
			}
		}
	})
}

// However many sweep at once, an entry has one owner, and one of them took it.
func TestPeersThatSweepAtOnceTakeEachEntryOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "dead", 700)
		var mu sync.Mutex
		owners := map[string]string{}
		var wg sync.WaitGroup
		for i := range 8 {
			g := settled(t, rdb, topic, fmt.Sprintf("worker-%d", i))
			wg.Go(func() {
				for more := true; more; {
					swept, err := g.Sweep(t.Context(), topic, 50, all, func(entries []recovery.Entry) {
						mu.Lock()
						defer mu.Unlock()
						for _, e := range entries {
							if owners[e.ID] != "" {
								t.Errorf("%s: %s and %s", e.ID, owners[e.ID], g.Consumer)
							}
							owners[e.ID] = g.Consumer
						}
					})
					if err != nil {
						t.Error(err)
					}
					more = swept.Claimed > 0
				}
			})
		}
		wg.Wait()
		require.Len(t, owners, len(ids))
		for _, p := range pendingOf(t, rdb, topic, "") {
			require.Equal(t, owners[p.ID], p.Consumer)
			require.EqualValues(t, 1, p.RetryCount)
		}
	})
}

// What changes between the look and the claim counts.
func TestAClaimAsksAgainWhoIsAlive(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for name, change := range map[string]func(topic string){
			"the owner renewed":      func(topic string) { lease(t, rdb, topic, "g", "owner", time.Hour) },
			"the owner's lease went": func(topic string) { rdb.ZRem(t.Context(), rediskey.Leases(topic, "g"), "owner") },
			"the claimer's passed":   func(topic string) { silence(t, rdb, topic, "a") },
			"the claimer's went":     func(topic string) { rdb.ZRem(t.Context(), rediskey.Leases(topic, "g"), "a") },
		} {
			topic, ids := abandon(t, rdb, "owner", 3)
			a := settled(t, rdb, topic, "a")
			r := &recorder{before: func(command string) {
				if command == "xpending" {
					change(topic)
				}
			}}
			rdb.AddHook(r)
			taken, _ := sweep(t, a, topic, 0)
			r.before = nil
			require.Empty(t, taken, name)
			require.Equal(t, 1, r.count("xpending"), name)
			require.Equal(t, ids, pendingIDs(t, rdb, topic, "owner"), name)
		}
	})
}

func TestDEL01_EntriesDeletedWhilePendingAreReportedOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "dead", 4)
		dead := recovery.NewGroup(rdb, topic, "g", "dead")
		for _, id := range ids {
			_, _, err := dead.Fail(t.Context(), topic, id, errors1)
			require.NoError(t, err)
		}
		require.NoError(t, rdb.XDel(t.Context(), topic, ids[1]).Err())
		require.NoError(t, rdb.XTrimMinID(t.Context(), topic, ids[1]).Err())
		a := settled(t, rdb, topic, "a")
		taken, swept := sweep(t, a, topic, 0)
		require.Equal(t, ids[2:], entryIDs(taken))
		require.ElementsMatch(t, ids[:2], swept.Gone)
		require.Equal(t, ids[2:], pendingIDs(t, rdb, topic, ""))
		require.Len(t, failuresOf(t, rdb, topic), 2)
		_, swept = sweep(t, a, topic, 0)
		require.Empty(t, swept.Gone)
	})
}

// Redis 6.2 lets entries be claimed whose record is gone, as does whatever deletes one
// right after the claim.
func TestDEL04_ARecordThatIsGoneAfterTheClaimIsAcknowledged(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic, ids := abandon(t, rdb, "dead", 3)
	dead := recovery.NewGroup(rdb, topic, "g", "dead")
	_, _, err := dead.Fail(t.Context(), topic, ids[1], errors1)
	require.NoError(t, err)
	hooked := redistest.Shared(t).Client(t)
	hooked.AddHook(&recorder{before: func(name string) {
		if name == "xrange" {
			require.NoError(t, rdb.XDel(t.Context(), topic, ids[1]).Err())
		}
	}})
	taken, swept := sweep(t, settled(t, hooked, topic, "a"), topic, 0)
	require.Equal(t, []string{ids[0], ids[2]}, entryIDs(taken))
	require.Equal(t, ids[1:2], swept.Gone)
	require.Equal(t, []string{ids[0], ids[2]}, pendingIDs(t, rdb, topic, ""))
	require.Empty(t, failuresOf(t, rdb, topic))
}

// An outage ends that was shorter than a lease: who renewed just before it still has a
// lease, and is not to claim from who renewed some time before, and is about to again.
func TestDUP06_AfterTroubleWithTheServerPeersGetTheirChanceToRenew(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	topic, early := abandon(t, rdb, "early", 1)
	publish(t, rdb, topic, 2)
	readAs(t, rdb, topic, "g", "slow", 1)
	dead := readAs(t, rdb, topic, "g", "dead", 1)
	lease(t, rdb, topic, "g", "slow", time.Hour)
	lease(t, rdb, topic, "g", "dead", time.Hour)
	a := recovery.NewGroup(rdb, topic, "g", "a")
	a.Lease = 3 * time.Second
	renew := func() bool { return a.Renew(t.Context()) == nil }
	require.Eventually(t, func() bool { // until it is new no longer
		taken, _ := sweep(t, a, topic, 0)
		return renew() && len(taken) == len(early)
	}, patience, 50*time.Millisecond)

	p.Cut()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, a.Renew(short))
	p.Heal()
	silence(t, rdb, topic, "slow", "dead")
	require.Eventually(t, renew, patience, time.Millisecond)
	taken, swept := sweep(t, a, topic, 0)
	require.Empty(t, taken)
	require.True(t, swept.Waits)
	lease(t, rdb, topic, "g", "slow", time.Hour) // it renews
	require.Eventually(t, func() bool {
		taken, _ = sweep(t, a, topic, 0)
		return len(taken) > 0 || !renew()
	}, patience, 50*time.Millisecond)
	require.Equal(t, dead, entryIDs(taken), "of who does not, it claims")
	require.Len(t, pendingIDs(t, rdb, topic, "slow"), 1)
}
