package soak_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/internal/soak"
)

// topology is the servers of a soak, and what may happen to them.
type topology struct {
	servers soak.Servers
	// nodes are those that workers reach through proxies.
	nodes []*redistest.Server
	// trouble does something to the servers, and says what, when they serve again.
	trouble func(t *testing.T) string
	// lossy says that trouble may lose what was acknowledged.
	lossy bool
}

func newTopology(t *testing.T, name string) *topology {
	t.Helper()
	switch name {
	case "standalone":
		return standalone(t)
	case "cluster":
		return cluster(t)
	case "sentinel":
		return sentinel(t)
	}
	t.Fatalf("topology %q is none of standalone, cluster, sentinel", name)
	return nil
}

// standalone is one server that writes all to its disk: it loses nothing.
func standalone(t *testing.T) *topology {
	t.Helper()
	s := redistest.Standalone(t, "appendonly yes", "appendfsync always")
	return &topology{
		servers: soak.Servers{Addrs: []string{s.Addr}}, nodes: []*redistest.Server{s},
		trouble: func(t *testing.T) string {
			t.Helper()
			away := upTo(3 * time.Second)
			if rand.IntN(3) == 0 {
				s.Pause(t)
				time.Sleep(away)
				s.Resume(t)
				return "server paused"
			}
			s.Kill(t)
			time.Sleep(away)
			s.Start(t)
			return "server killed"
		},
	}
}

// cluster has a replica for each master, which takes over in order, and slots that move:
// neither loses anything.
func cluster(t *testing.T) *topology {
	t.Helper()
	c := redistest.NewCluster(t, 1)
	o := c.Options()
	var topics []string
	for topic := range soak.Groups() {
		topics = append(topics, topic)
	}
	return &topology{
		servers: soak.Servers{Addrs: o.Addrs, Cluster: true}, nodes: c.Nodes,
		trouble: func(t *testing.T) string {
			t.Helper()
			slot := c.Slot(t, topics[rand.IntN(len(topics))])
			from := c.Owner(t, slot)
			if rand.IntN(2) == 0 {
				to := from
				for to == from {
					to = c.Owner(t, rand.IntN(16384))
				}
				c.MigrateSlot(t, slot, from, to)
				return "slot moved"
			}
			takeOver(t, c, slot, from)
			return "replica took over"
		},
	}
}

// takeOver makes the replica of a master the master, in order.
func takeOver(t *testing.T, c *redistest.Cluster, slot int, master *redistest.Server) {
	t.Helper()
	for _, node := range c.Nodes {
		r := redis.NewClient(node.Options())
		role, err := r.Do(t.Context(), "ROLE").Slice()
		require.NoError(t, err)
		if role[0] == "slave" && fmt.Sprintf("%v:%v", role[1], role[2]) == master.Addr {
			require.NoError(t, r.ClusterFailover(t.Context()).Err())
		}
		require.NoError(t, r.Close())
	}
	require.Eventually(t, func() bool { return c.Owner(t, slot) != master }, 30*time.Second, 50*time.Millisecond, "no replica of %s took over", master.Addr)
}

// sentinel changes masters, which may lose the last writes.
func sentinel(t *testing.T) *topology {
	t.Helper()
	s := redistest.NewSentinel(t)
	return &topology{
		servers: soak.Servers{Addrs: s.SentinelAddrs, MasterName: s.MasterName}, nodes: s.Nodes, lossy: true,
		trouble: func(t *testing.T) string {
			t.Helper()
			s.Failover(t)
			return "failover"
		},
	}
}

func upTo(d time.Duration) time.Duration { return rand.N(d) }
