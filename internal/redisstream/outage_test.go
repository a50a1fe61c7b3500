package redisstream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
)

// send publishes until it succeeds.
func send(t testing.TB, rdb redis.UniversalClient, topic, text string) {
	t.Helper()
	eventually(t, text+" is published", func() bool {
		return redisstream.Publish(t.Context(), rdb, topic, []byte(text)) == nil
	})
}

func TestFAIL09_FAIL11_RestartsOfTheServerEndNoSubscription(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "appendonly yes", "appendfsync always")
	rdb := server.Client(t)
	topic := freshTopic()
	c := config(topic)
	var log lines
	c.Logger = log.logger()
	var seen calls
	r := start(t, rdb, c, seen.handle)
	for i := range 6 {
		send(t, rdb, topic, fmt.Sprint("a|", i))
		if i%2 == 0 {
			server.Kill(t)
			never(t, "it ends", time.Duration(rand.IntN(300))*time.Millisecond, func() bool { return len(r.ended) > 0 })
			server.Start(t)
		} else {
			server.Restart(t)
		}
	}
	send(t, rdb, topic, "a|last")
	eventually(t, "all are handled", func() bool {
		n := seen.count("a|last")
		for i := range 6 {
			n *= seen.count(fmt.Sprint("a|", i))
		}
		return n > 0
	})
	drained(t, rdb, topic)
	require.LessOrEqual(t, log.count("reading failed"), 4, log.String())
	r.end(t)
}

func TestFAIL03_ALoadingServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "key-load-delay 20000", "rdbcompression no", "loading-process-events-interval-bytes 1024")
	rdb := server.Client(t)
	topic := freshTopic()
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	send(t, rdb, topic, "a|1")
	drained(t, rdb, topic)
	pipe := rdb.Pipeline()
	for i := range 100 {
		pipe.Set(t.Context(), fmt.Sprint("filler", i), strings.Repeat("x", 2000), 0)
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	require.NoError(t, rdb.Save(t.Context()).Err())
	server.Kill(t)
	var starting sync.WaitGroup
	starting.Go(func() { server.Start(t) })
	o := server.Options()
	o.MaxRetries = -1
	impatient := redis.NewClient(o)
	defer impatient.Close() //nolint:errcheck // it only looks
	eventually(t, "it loads", func() bool { return redis.HasErrorPrefix(impatient.Ping(t.Context()).Err(), "LOADING") })
	late := freshTopic()
	r2 := start(t, rdb, config(late), seen.handle) // begins while it loads
	send(t, rdb, topic, "a|2")
	send(t, rdb, late, "b|1")
	eventually(t, "both go on", func() bool { return seen.count("a|2")*seen.count("b|1") > 0 })
	starting.Wait()
	r.end(t)
	r2.end(t)
}

func TestFAIL05_AServerThatRefusesWritesIsWaitedOut(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	c := config(topic)
	var log lines
	c.Logger = log.logger()
	var seen calls
	r := start(t, rdb, c, seen.handle)
	publish(t, direct, topic, "a|1")
	drained(t, direct, topic)
	dir, err := direct.ConfigGet(t.Context(), "dir").Result()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir["dir"], "dump.rdb"), 0o700))
	require.NoError(t, direct.ConfigSet(t.Context(), "save", "3600 1").Err())
	require.NoError(t, direct.BgSave(t.Context()).Err())
	eventually(t, "writes are refused", func() bool {
		return redisstream.Publish(t.Context(), direct, topic, []byte("a|refused")) != nil
	})
	eventually(t, "it says so", func() bool { return log.count("MISCONF") > 0 })
	reads := p.Count("XREADGROUP")
	never(t, "it reads in a loop", time.Second, func() bool { return p.Count("XREADGROUP") > reads+20 })
	require.LessOrEqual(t, log.count("\n"), 8, log.String())
	require.NoError(t, direct.ConfigSet(t.Context(), "stop-writes-on-bgsave-error", "no").Err())
	send(t, direct, topic, "a|2")
	eventually(t, "it goes on", func() bool { return seen.count("a|2") > 0 })
	drained(t, direct, topic)
	require.Empty(t, letters(t, direct, topic))
	r.end(t)
}

func TestFAIL06_MissingReplicasSpendNoAttempt(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	topic := freshTopic()
	c := config(topic)
	c.MaxDeliveries = 2
	var seen calls
	r := start(t, rdb, c, func(ctx context.Context, text string) error {
		if seen.add(text) == 1 {
			require.NoError(t, rdb.ConfigSet(ctx, "min-replicas-to-write", "5").Err())
		}
		return redisstream.Publish(ctx, rdb, "stream.other:event", []byte("x"))
	})
	publish(t, rdb, topic, "a|1")
	eventually(t, "it is tried on", func() bool { return seen.count("a|1") > 5 })
	require.NoError(t, rdb.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	drained(t, rdb, topic)
	require.Empty(t, letters(t, rdb, topic))
	r.end(t)
}

func TestFAIL01_FAIL10_FailoversUnderSentinelEndNoSubscription(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	rdb := s.Client(t)
	topic := freshTopic()
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	for i := range 2 {
		text := fmt.Sprint("a|", i)
		send(t, rdb, topic, text)
		eventually(t, "it is handled", func() bool { return seen.count(text) > 0 })
		s.Failover(t)
	}
	send(t, rdb, topic, "a|moved")
	eventually(t, "it goes on", func() bool { return seen.count("a|moved") > 0 })
	master := s.Master(t)
	master.Kill(t)
	s.AwaitFailover(t, master)
	send(t, rdb, topic, "a|after the crash")
	eventually(t, "it goes on", func() bool { return seen.count("a|after the crash") > 0 })
	r.end(t)
}

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

func TestCONN03_ManySubscriptionsStarveNobody(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(t *testing.T) redis.UniversalClient{
		"standalone": func(t *testing.T) redis.UniversalClient {
			o := redistest.Shared(t).Options()
			o.PoolSize = 2
			return redis.NewClient(o)
		},
		"cluster": func(t *testing.T) redis.UniversalClient {
			o := redistest.SharedCluster(t).Options()
			o.PoolSize = 2
			return redis.NewClusterClient(o)
		},
		"sentinel": func(t *testing.T) redis.UniversalClient {
			o := redistest.SharedSentinel(t).Options()
			o.PoolSize = 2
			return redis.NewFailoverClient(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := client(t)
			t.Cleanup(func() { _ = rdb.Close() })
			var all []*running
			var n atomic.Int64
			names := make([]string, 8)
			for i := range names {
				names[i] = freshTopic()
				all = append(all, start(t, rdb, config(names[i]), func(context.Context, string) error { n.Add(1); return nil }))
			}
			for range 5 {
				for _, topic := range names {
					publish(t, rdb, topic, "a|1")
				}
			}
			for _, topic := range names {
				drained(t, rdb, topic)
			}
			began := time.Now()
			require.NoError(t, rdb.Ping(t.Context()).Err())
			require.Less(t, time.Since(began), time.Second)
			for _, r := range all {
				r.end(t)
			}
			require.EqualValues(t, 40, n.Load())
		})
	}
}

// CONN-14: something closes connections that are silent.
func TestCONN14_ConnectionsThatAreCutWhileIdleMakeNoNoise(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	c := config(topic)
	var log lines
	c.Logger, c.Sweep = log.logger(), time.Hour
	var seen calls
	r := start(t, rdb, c, seen.handle)
	for i := range 5 {
		p.Cut()
		p.Heal()
		text := fmt.Sprint("a|", i)
		publish(t, direct, topic, text)
		eventually(t, "messages still flow", func() bool { return seen.count(text) > 0 })
	}
	drained(t, direct, topic)
	require.LessOrEqual(t, log.count("\n"), 4, log.String())
	r.end(t)
}

// BIG-05: a new group on a long stream. BIG-04: in small.
func TestBIG04_BIG05_ABacklogIsHandledOnceAndInFlatMemory(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	message := make([]byte, 4096)
	copy(message, "a|")
	batch := make([][]byte, 32)
	for i := range batch {
		batch[i] = message
	}
	const n = 160
	for range n {
		require.NoError(t, redisstream.Publish(t.Context(), rdb, topic, batch...))
	}
	var handled atomic.Int64
	var most atomic.Int64
	c := config(topic) // prefetch 16, and room for 64 that are acknowledged, 100 at once
	r := start(t, rdb, c, func(context.Context, string) error {
		if handled.Add(1)%100 == 0 {
			most.Store(max(most.Load(), pending(t, rdb, topic)))
		}
		return nil
	})
	drained(t, rdb, topic)
	r.end(t)
	require.EqualValues(t, n*len(batch), handled.Load())
	require.Positive(t, most.Load())
	require.LessOrEqual(t, most.Load(), int64(16+64+100))
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
