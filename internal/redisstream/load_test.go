package redisstream_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
)

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
	c.Logger = log.logger()
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
	r := start(t, rdb, c, func(ctx context.Context, _ string) error {
		if handled.Add(1)%100 == 0 {
			p, err := rdb.XPending(ctx, topic, "g").Result()
			if err != nil {
				return err
			}
			most.Store(max(most.Load(), p.Count))
		}
		return nil
	})
	drained(t, rdb, topic)
	r.end(t)
	require.EqualValues(t, n*len(batch), handled.Load())
	require.Positive(t, most.Load())
	require.LessOrEqual(t, most.Load(), int64(16+64+100))
}
