package redisstream_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
)

var benchTopics atomic.Int64

func benchTopic() string { return fmt.Sprintf("bench.t%d:event", benchTopics.Add(1)) }

// BenchmarkThroughput holds publish (batches of 100) → handle → acknowledge, with keys
// in order, leases and dead letters, against bare XADD, XREADGROUP and XACK in batches
// of 100, in turns.
func BenchmarkThroughput(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	const round = 10_000
	messages := make([][]byte, 100)
	for i := range messages {
		messages[i] = make([]byte, 400)
	}
	topic, bareTopic := benchTopic(), benchTopic()
	ctx, cancel := context.WithCancel(b.Context())
	var handled atomic.Int64
	c := redisstream.Config{Topics: []string{topic}, Consumer: "bench"}
	c.Group, c.Start = "bench", es.FromBeginning
	var n atomic.Int64
	decode := func([]byte) (any, string, error) { return nil, fmt.Sprint(n.Add(1) % 500), nil }
	ended := make(chan error, 1)
	go func() {
		ended <- redisstream.Subscribe(ctx, rdb, c, decode, func(context.Context, any) error {
			handled.Add(1)
			return nil
		})
	}()
	require.NoError(b, rdb.XGroupCreateMkStream(ctx, bareTopic, "bench", "0").Err())
	var ours, bare time.Duration
	var sent int64
	for b.Loop() {
		start := time.Now()
		for range round / len(messages) {
			require.NoError(b, redisstream.Publish(ctx, rdb, topic, messages...))
		}
		sent += round
		for handled.Load() < sent || rdb.XPending(ctx, topic, "bench").Val().Count > 0 {
			time.Sleep(time.Millisecond)
		}
		ours += time.Since(start)
		b.StopTimer()
		start = time.Now()
		bareRound(b, rdb, bareTopic, messages, round)
		bare += time.Since(start)
		b.StartTimer()
	}
	cancel()
	require.NoError(b, <-ended)
	b.ReportMetric(bare.Seconds()/ours.Seconds(), "x-bare")
	b.ReportMetric(float64(sent)/ours.Seconds(), "msg/s")
}

func bareRound(b *testing.B, rdb *redis.Client, topic string, messages [][]byte, n int) {
	b.Helper()
	ctx := b.Context()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for got := 0; got < n; {
			streams, err := rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "bench", Consumer: "c", Streams: []string{topic, ">"}, Count: 100, Block: time.Second}).Result()
			if err != nil {
				continue
			}
			ids := make([]string, 0, 100)
			for _, m := range streams[0].Messages {
				ids = append(ids, m.ID)
			}
			if err := rdb.XAck(ctx, topic, "bench", ids...).Err(); err != nil {
				b.Error(err)
			}
			got += len(ids)
		}
	}()
	for sent := 0; sent < n; sent += len(messages) {
		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, m := range messages {
				p.XAdd(ctx, &redis.XAddArgs{Stream: topic, Values: []any{redisstream.Field, m}})
			}
			return nil
		})
		require.NoError(b, err)
	}
	<-done
}
