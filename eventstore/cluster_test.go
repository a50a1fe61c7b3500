package eventstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
)

func otherNode(c *redistest.Cluster, s *redistest.Server) *redistest.Server {
	if c.Nodes[0] == s {
		return c.Nodes[1]
	}
	return c.Nodes[0]
}

func TestCLU03_ASlotThatIsHalfMovedIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	rdb := c.Client(t)
	typ := newType()
	s, hasty := open(rdb, typ), open(rdb, typ)
	s.Patience, hasty.Patience = eventually, 50*time.Millisecond
	id, fresh := typ.ID("Aa"), typ.ID("BB") // of one bucket, so of one slot
	commits := commitsOf(id, 1, 3)
	add(t, s, commits[0])
	require.NoError(t, hasty.Ready(t.Context(), typ))

	slot := c.Slot(t, rediskey.EventKeys(id).Stream)
	from := c.Owner(t, slot)
	migration := c.StartMigration(t, slot, from, otherNode(c, from))
	migration.Move(t, rediskey.EventKeys(id).Stream)
	require.ErrorIs(t, appendOne(t, hasty, commits[1]), es.ErrUnavailable, "patience ends")

	done := make(chan error, 2)
	go func() { done <- appendOne(t, s, commits[1]) }()
	go func() { done <- appendOne(t, s, commitOf(fresh, 1)) }()
	require.Never(t, func() bool { return len(done) == 2 }, 300*time.Millisecond, tick)
	migration.Finish(t)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	add(t, s, commits[2])
	requireStored(t, s, id, commits...)
	require.Equal(t, []string{"Aa", "BB"}, scan(t, s, typ))
}

func TestCLU03_NoAppendIsLostOrDoubledWhileSlotsMove(t *testing.T) {
	t.Parallel()
	const aggregates, writers, moves = 320, 8, 12
	c := redistest.NewCluster(t, 0)
	typ := newType()
	s := open(c.Client(t), typ)
	s.Patience = eventually
	require.NoError(t, s.Ready(t.Context(), typ))
	stored := make([][]es.Commit, aggregates)
	write := func(i int) {
		version := len(stored[i]) + 1
		commit := commitOf(typ.ID(fmt.Sprint(i)), version)
		if _, err := s.Append(t.Context(), es.AppendOptions{Note: true}, commit); err != nil {
			t.Errorf("aggregate %d, version %d: %v", i, version, err)
			return
		}
		stored[i] = append(stored[i], commit)
	}
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		together(writers, func(w int) {
			for round := 0; ; round++ {
				for i := w; i < aggregates; i += writers {
					write(i)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}()
	for bucket := range moves {
		slot := c.Slot(t, rediskey.Index(typ, bucket))
		from := c.Owner(t, slot)
		c.MigrateSlot(t, slot, from, otherNode(c, from))
	}
	close(stop)
	<-ended
	total := 0
	for i, commits := range stored {
		requireStored(t, s, typ.ID(fmt.Sprint(i)), commits...)
		total += len(commits)
	}
	require.GreaterOrEqual(t, total, aggregates)
	require.Len(t, scan(t, s, typ), aggregates)
	require.Len(t, collect(t, s.Unpublished(t.Context(), typ)), aggregates)
	t.Logf("%d appends while %d slots moved", total, moves)
}

func TestCLU05_NothingIsRedirectedInSteadyState(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 1)
	typ := newType()
	rdb := c.Client(t)
	s := open(rdb, typ)
	require.NoError(t, s.Ready(t.Context(), typ)) // the client knows the cluster now
	for _, node := range c.Nodes {
		require.NoError(t, node.Client(t).ConfigResetStat(t.Context()).Err())
	}
	s = open(rdb, typ)
	for i := range 40 {
		id := typ.ID(fmt.Sprint("a-", i))
		commits := commitsOf(id, 1, 2)
		for _, commit := range commits {
			_, err := s.Append(t.Context(), es.AppendOptions{Note: true}, commit)
			require.NoError(t, err)
		}
		require.ErrorIs(t, appendOne(t, s, commitOf(id, 1)), es.ErrVersionConflict)
		requireStored(t, s, id, commits...)
		_, err := s.Last(t.Context(), id)
		require.NoError(t, err)
		_, err = s.Find(t.Context(), id, 1)
		require.NoError(t, err)
		_, err = s.FindRequest(t.Context(), id, commits[0].RequestID)
		require.NoError(t, err)
		_, err = s.Published(t.Context(), id, 1, 1)
		require.NoError(t, err)
	}
	require.Len(t, scan(t, s, typ), 40)
	require.Len(t, collect(t, s.Unpublished(t.Context(), typ)), 40)
	require.NoError(t, s.Purge(t.Context(), typ.ID("a-1"), 2, eventstore.PurgeOptions{Tombstone: true}))
	scripts := 0
	for _, node := range c.Nodes {
		stats := node.Client(t).Info(t.Context(), "everything").Val()
		for _, redirect := range []string{"errorstat_MOVED", "errorstat_ASK", "errorstat_CROSSSLOT", "errorstat_READONLY"} {
			require.NotContains(t, stats, redirect, node.Addr)
		}
		if strings.Contains(stats, "cmdstat_evalsha:") {
			scripts++
		}
	}
	require.Equal(t, 3, scripts, "every master was used, and no replica")
}

func TestCLU06_ScanSeesEveryMaster(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	typ := newType()
	s := open(c.Client(t), typ)
	owners := map[*redistest.Server]int{}
	want := map[string]bool{}
	for i := range 60 {
		id := typ.ID(fmt.Sprint("a-", i))
		add(t, s, commitOf(id, 1))
		owners[c.Owner(t, c.Slot(t, rediskey.EventKeys(id).IDs))]++
		want[id.ID] = true
	}
	require.Len(t, owners, 3, "%v", owners)
	ids := scan(t, s, typ)
	require.Len(t, ids, len(want), "each once")
	for _, id := range ids {
		require.True(t, want[id], id)
	}
}

// A page of which nothing is left is not the end.
func TestCLU08_ScanGoesOnAfterPagesOfPurgedIds(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		s := open(rdb, typ)
		var ids []string
		for i := 0; len(ids) < 60; i++ {
			if id := fmt.Sprintf("%05d", i); rediskey.Bucket(id) == 7 {
				ids = append(ids, id)
				add(t, s, commitOf(typ.ID(id), 1))
			}
		}
		for _, id := range ids[:59] {
			require.NoError(t, s.Purge(t.Context(), typ.ID(id), 1, eventstore.PurgeOptions{Tombstone: true}))
		}
		require.Equal(t, ids[59:], scan(t, s, typ))
		require.NoError(t, s.Purge(t.Context(), typ.ID(ids[59]), 1, eventstore.PurgeOptions{Tombstone: true}))
		require.Empty(t, scan(t, s, typ))
	})
}

// The client was given names, and asks for the routing every second.
func TestCLU09_AppendsGoOnAfterAllAddressesOfAClusterChanged(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	rdb := redis.NewClusterClient(c.NamedOptions())
	t.Cleanup(func() { _ = rdb.Close() })
	var before int
	w := during(t, rdb, func(w *writer) {
		require.Eventually(t, func() bool { before = w.count(); return before > 0 }, eventually, tick)
		c.Move(t) // by its end none of the old addresses answers any more
		after := w.count()
		require.Eventually(t, func() bool { return w.count() > after }, 30*time.Second, tick)
	})
	require.Zero(t, w.requireNothingDoubled(t))
	t.Logf("%d commits before, %d in all, %v at most between two", before, len(w.acknowledged), w.longest)
}

func TestCLU11_AggregatesOfOneTypeSpreadOverTheCluster(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	typ := newType()
	const n = 100_000
	for name, format := range map[string]string{"numbers": "%d", "padded": "order-%010d", "hex": "%08x-0000-4000-8000-000000000000"} {
		buckets := map[int]int{}
		for i := range n {
			buckets[rediskey.Bucket(fmt.Sprintf(format, i))]++
		}
		require.Len(t, buckets, rediskey.Buckets)
		for bucket, count := range buckets {
			require.Less(t, count, 3*n/rediskey.Buckets, "%s, bucket %d", name, bucket)
		}
	}
	slots, owners := map[int]bool{}, map[*redistest.Server]int{}
	for bucket := range rediskey.Buckets {
		slot := c.Slot(t, rediskey.Index(typ, bucket))
		slots[slot] = true
		owners[c.Owner(t, slot)]++
	}
	// Nearly always it is all of them. For one name in fifty CRC16, being linear, gives
	// some buckets of three digits the slots of others; those of two never share one.
	require.GreaterOrEqual(t, len(slots), 90)
	for _, count := range owners {
		require.Greater(t, count, rediskey.Buckets/3/2, "each master has its share")
	}
}
