package redisstream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

func TestCLU01_ManyTopicsOfOneSubscriptionMayLieAnywhere(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		names := make([]string, 12)
		for i := range names {
			names[i] = freshTopic()
		}
		var seen calls
		r := start(t, rdb, config(names...), seen.handle)
		for i, n := range names {
			publish(t, rdb, n, fmt.Sprint("a|", i))
		}
		for _, n := range names {
			drained(t, rdb, n)
		}
		require.Len(t, seen.all(), 12)
		require.Less(t, r.end(t), time.Second+500*time.Millisecond)
	})
}

func TestCLU04_ASlotThatMovesTakesItsReadersAlong(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	o := c.Options()
	o.ClusterStateReloadInterval = time.Hour
	rdb := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	topic := freshTopic()
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	publish(t, rdb, topic, "a|1")
	drained(t, rdb, topic)
	slot := c.Slot(t, topic)
	from := c.Owner(t, slot)
	to := c.Nodes[0]
	if to == from {
		to = c.Nodes[1]
	}
	c.MigrateSlot(t, slot, from, to)
	began := time.Now()
	send(t, rdb, topic, "a|2")
	eventually(t, "it goes on", func() bool { return seen.count("a|2") > 0 })
	require.Less(t, time.Since(began), 5*time.Second)
	drained(t, rdb, topic)
	r.end(t)
}

// LOST-08: a client that prefers replicas does not ask them what it must know.
func TestLOST08_ReplicasAreNotAsked(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t, 1)
	o := cluster.Options()
	o.ReadOnly = true
	rdb := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	topic := freshTopic()
	c := config(topic)
	c.Start = ""
	var seen calls
	r := start(t, rdb, c, seen.handle)
	master := cluster.Owner(t, cluster.Slot(t, topic)).Client(t)
	eventually(t, "it is there", func() bool { return master.Exists(t.Context(), topic, "{"+topic+"}:lease:g").Val() == 2 })
	publish(t, rdb, topic, "a|1", "a|2")
	drained(t, master, topic)
	r.end(t)
	for _, replica := range cluster.Nodes[3:] {
		stats, err := replica.Client(t).Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		for _, command := range []string{"xinfo", "xlen", "xrange", "xpending", "zscore", "hmget"} {
			require.NotContains(t, stats, "cmdstat_"+command)
		}
	}
}

// The client was given names: the clone that reads has them too.
func TestCLU09_MessagesFlowAfterAllAddressesOfAClusterChanged(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	rdb := redis.NewClusterClient(c.NamedOptions())
	t.Cleanup(func() { _ = rdb.Close() })
	topic := freshTopic()
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	send(t, rdb, topic, "a|before")
	eventually(t, "it is handled", func() bool { return seen.count("a|before") > 0 })
	c.Move(t) // by its end none of the old addresses answers any more
	send(t, rdb, topic, "a|after")
	eventually(t, "it goes on", func() bool { return seen.count("a|after") > 0 })
	drained(t, rdb, topic)
	r.end(t)
}
