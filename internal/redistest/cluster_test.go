package redistest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

func TestClusterSpreadsKeysOverThreeMasters(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	require.Same(t, c, redistest.SharedCluster(t))
	r := c.Client(t)
	owners := map[string]bool{}
	for i := range 50 {
		key := fmt.Sprintf("redistest.spread.%d", i)
		require.NoError(t, r.Set(t.Context(), key, i, 0).Err())
		owner := c.Owner(t, c.Slot(t, key))
		require.Equal(t, fmt.Sprint(i), owner.Client(t).Get(t.Context(), key).Val(), "the owner holds it")
		owners[owner.Addr] = true
	}
	require.Len(t, owners, 3)
}

func TestCLU09_AMovedClusterKeepsItsDataAndNoneOfItsAddresses(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	r := redis.NewClusterClient(c.NamedOptions())
	t.Cleanup(func() { _ = r.Close() })
	before := map[string]bool{}
	for i, s := range c.Nodes {
		before[s.Addr] = true
		require.NoError(t, r.Set(t.Context(), fmt.Sprint("k", i), i, 0).Err())
	}
	c.Move(t)
	for i, s := range c.Nodes {
		require.False(t, before[s.Addr])
		require.Eventually(t, func() bool { return r.Get(t.Context(), fmt.Sprint("k", i)).Val() == fmt.Sprint(i) }, eventually, tick)
	}
}

func TestReplicaTakesOverFromKilledMaster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 1)
	require.Len(t, c.Nodes, 6)
	r := c.Client(t)
	require.NoError(t, r.Set(t.Context(), "k", "v", 0).Err())
	slot := c.Slot(t, "k")
	master := c.Owner(t, slot)
	replica := c.Nodes[3+slices.Index(c.Nodes, master)].Client(t)
	require.Eventually(t, func() bool { return replica.DBSize(t.Context()).Val() == 1 }, eventually, tick)
	master.Kill(t)
	require.Eventually(t, func() bool { return c.Owner(t, slot) != master && r.Get(t.Context(), "k").Val() == "v" }, eventually, tick)
}

func TestMigrateSlotMovesKeysAndOwner(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	r := c.Client(t)
	for i := range 250 { // more than one page of keys
		require.NoError(t, r.Set(t.Context(), fmt.Sprintf("{moved}%d", i), i, 0).Err())
	}
	slot := c.Slot(t, "{moved}")
	from := c.Owner(t, slot)
	to := other(c, from)
	c.MigrateSlot(t, slot, from, to)
	require.Same(t, to, c.Owner(t, slot))
	require.EqualValues(t, 250, to.Client(t).DBSize(t.Context()).Val())
	require.Zero(t, from.Client(t).DBSize(t.Context()).Val())
	require.Equal(t, "249", r.Get(t.Context(), "{moved}249").Val())
}

func TestHalfMigratedSlotAnswersAskAndTryAgain(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	r := c.Client(t)
	require.NoError(t, r.MSet(t.Context(), "{half}a", "1", "{half}b", "2").Err())
	slot := c.Slot(t, "{half}")
	from := c.Owner(t, slot)
	to := other(c, from)
	m := c.StartMigration(t, slot, from, to)
	m.Move(t, "{half}a")
	require.ErrorContains(t, from.Client(t).Get(t.Context(), "{half}a").Err(), "ASK")
	asking := to.Client(t).Pipeline()
	asking.Do(t.Context(), "ASKING")
	both := asking.MGet(t.Context(), "{half}a", "{half}b")
	_, err := asking.Exec(t.Context())
	require.ErrorContains(t, err, "TRYAGAIN")
	require.ErrorContains(t, both.Err(), "TRYAGAIN")
	m.Finish(t)
	require.Equal(t, []any{"1", "2"}, to.Client(t).MGet(t.Context(), "{half}a", "{half}b").Val())
	require.ErrorContains(t, from.Client(t).Get(t.Context(), "{half}a").Err(), "MOVED")
}

func other(c *redistest.Cluster, s *redistest.Server) *redistest.Server {
	if c.Nodes[0] == s {
		return c.Nodes[1]
	}
	return c.Nodes[0]
}
