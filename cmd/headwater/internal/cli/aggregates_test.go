package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestAggregates(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	plant(t, rdb, order.ID("o-1"), 3, false)
	plant(t, rdb, order.ID("o-2").InTenant("acme"), 2, true)
	plant(t, rdb, es.AggregateType{Context: "shop", Name: "item"}.ID("i-1"), 1, false)
	plantSnapshot(t, rdb, order.ID("o-1"), 3)
	s := newSession(t, "aggregates", url)
	s.run("aggregates", "list")
	require.NoError(t, recovery.Register(t.Context(), rdb, "shop.order:command", "shop.order:event", "others"))
	s.run("aggregates", "list")
	s.run("aggregates", "list", "--scan")
	s.run("aggregates", "list", "shop.order")
	s.run("aggregates", "list", "shop.order", "--limit", "1")
	s.once("aggregates", "list", "shop.order", "--after", "o-1")
	s.run("aggregates", "show", "shop.order", "o-1")
	s.once("aggregates", "show", "shop.order", "o-2")
	s.run("aggregates", "show", "shop.order", "nobody")
	s.run("aggregates", "list", "order")
	s.run("aggregates", "list", "shop.order", "--limit", "0")

	key := rediskey.EventKeys(order.ID("o-1"))
	require.NoError(t, rdb.ZRemRangeByScore(t.Context(), key.Stream, "2", "2").Err())
	require.NoError(t, rdb.ZRemRangeByScore(t.Context(), rediskey.EventKeys(order.ID("o-2").InTenant("acme")).Stream, "2", "2").Err())
	s.run("aggregates", "show", "shop.order", "o-1")
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	plant(t, rdb, order.ID("o-1"), 3, false)
	plantSnapshot(t, rdb, order.ID("o-1"), 3)
	s := newSession(t, "snapshot", url)
	s.run("snapshot", "show", "shop.order", "o-1")
	s.run("snapshot", "drop", "shop.order", "o-1")
	require.EqualValues(t, 1, rdb.Exists(t.Context(), rediskey.Snapshot(order.ID("o-1"))).Val())
	s.once("snapshot", "drop", "shop.order", "o-1", "--yes")
	require.Zero(t, rdb.Exists(t.Context(), rediskey.Snapshot(order.ID("o-1"))).Val())
	s.run("snapshot", "show", "shop.order", "o-1")
	require.NoError(t, rdb.Set(t.Context(), rediskey.Snapshot(order.ID("o-1")), "\x1b[2Jno snapshot", 0).Err())
	s.run("snapshot", "show", "shop.order", "o-1")
	s.once("snapshot", "drop", "shop.order", "o-1", "--yes", "--json")
}

func TestEvents(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	plant(t, rdb, order.ID("o-1"), 4, false)
	s := newSession(t, "events", url)
	s.run("events", "shop.order", "o-1")
	s.run("events", "shop.order", "o-1", "--from", "2", "--limit", "2")
	s.once("events", "shop.order", "o-1", "--to", "1", "--pretty")
	s.once("events", "shop.order", "o-1", "--follow", "--to", "1", "--json")
	s.run("events", "shop.order", "nobody")
	require.NoError(t, rdb.ZRemRangeByScore(t.Context(), rediskey.Stream(order.ID("o-1")), "2", "2").Err())
	require.NoError(t, rdb.ZAdd(t.Context(), rediskey.Stream(order.ID("o-1")), redisZ(5, "no commit")).Err())
	s.run("events", "shop.order", "o-1")
}

func TestReadsOnAClusterAndThroughSentinels(t *testing.T) {
	t.Parallel()
	cluster, sentinel := redistest.SharedCluster(t), redistest.SharedSentinel(t)
	for i := range 5 {
		plant(t, cluster.Client(t), order.ID(string(rune('a'+i))), 2, true)
	}
	plant(t, sentinel.Client(t), order.ID("a"), 2, true)
	for _, url := range []string{
		"redis://" + cluster.Nodes[1].Addr,
		"redis+cluster://" + cluster.Nodes[0].Addr,
		"redis+sentinel://" + sentinel.SentinelAddrs[0] + "/" + sentinel.MasterName,
	} {
		for _, args := range [][]string{
			{"aggregates", "list", "--scan"}, {"aggregates", "list", "shop.order"}, {"aggregates", "show", "shop.order", "a"}, {"events", "shop.order", "a"},
		} {
			r := run(t, url, append(args, "--json")...)
			require.Zero(t, r.code, r.out)
			require.NotEmpty(t, r.document(t))
		}
	}
}
