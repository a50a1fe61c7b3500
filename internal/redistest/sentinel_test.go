package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

const (
	eventually = 30 * time.Second
	tick       = 50 * time.Millisecond
)

func TestSentinelFailsOverOnCommand(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	c := s.Client(t)
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	old := s.Master(t)
	require.Same(t, s.Nodes[0], old)
	replica := s.Nodes[1].Client(t)
	require.Eventually(t, func() bool { return replica.Get(t.Context(), "k").Val() == "v" }, eventually, tick)
	s.Failover(t)
	require.Same(t, s.Nodes[1], s.Master(t))
	require.Eventually(t, func() bool { return c.Set(t.Context(), "k2", "v", 0).Err() == nil }, eventually, tick)
	require.Equal(t, "v", c.Get(t.Context(), "k").Val())
	s.Failover(t)
	require.Same(t, old, s.Master(t), "and back")
}

func TestSentinelReplacesKilledMaster(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	c := s.Client(t)
	old := s.Master(t)
	old.Kill(t)
	require.NotSame(t, old, s.AwaitFailover(t, old))
	require.Eventually(t, func() bool { return c.Set(t.Context(), "k", "v", 0).Err() == nil }, eventually, tick)
}

func TestEachRunsOnEveryTopology(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 3)
	t.Run("group", func(t *testing.T) { // returns once its parallel subtests have ended
		redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
			require.NoError(t, rdb.Set(t.Context(), "redistest.each", t.Name(), 0).Err())
			require.Equal(t, t.Name(), rdb.Get(t.Context(), "redistest.each").Val())
			seen <- t.Name()
		})
	})
	close(seen)
	var names []string
	for n := range seen {
		names = append(names, n)
	}
	prefix := t.Name() + "/group/"
	require.ElementsMatch(t, []string{prefix + "standalone", prefix + "cluster", prefix + "sentinel"}, names)
}
