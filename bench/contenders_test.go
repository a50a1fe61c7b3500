package bench_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/headwater-go/headwater/es"
	engine "github.com/headwater-go/headwater/internal/redisstream"
)

const (
	group = "bench"
	batch = 100
	// parallel is how many publish, and how many handle, where a library does one message at a time.
	parallel = 64
	patience = 20 * time.Second
)

var (
	names   atomic.Int64
	payload = make([]byte, 400)
)

// name is one that nobody had before.
func name(kind string) string { return fmt.Sprintf("%s%d:event", kind, names.Add(1)) }

func batchOf() [][]byte {
	messages := make([][]byte, batch)
	for i := range messages {
		messages[i] = payload
	}
	return messages
}

// await returns when done answers true.
func await(done func() (bool, error)) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("not all were acknowledged within %v", patience)
}

// acknowledged says whether every one of sent messages was handled, and none is pending.
func acknowledged(ctx context.Context, rdb *redis.Client, stream string, handled *atomic.Int64, sent int64) func() (bool, error) {
	return func() (bool, error) {
		if handled.Load() < sent {
			return false, nil
		}
		pending, err := rdb.XPending(ctx, stream, group).Result()
		return err == nil && pending.Count == 0, err
	}
}

// headwater publishes in batches; 500 keys in order, leases and dead letters are on.
func headwater(t testing.TB, rdb *redis.Client) contender {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	topic := name("ours")
	c := engine.Config{Topics: []string{topic}, Consumer: "c"}
	c.Group, c.Start = group, es.FromBeginning
	var keys, handled atomic.Int64
	decode := func([]byte) (any, string, error) { return nil, fmt.Sprint(keys.Add(1) % 500), nil }
	ended := make(chan error, 1)
	require.NoError(t, engine.Prepare(ctx, rdb, c))
	go func() {
		ended <- engine.Subscribe(ctx, rdb, c, decode, func(context.Context, any) error {
			handled.Add(1)
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	var sent int64
	return contender{"headwater", func(n int) error {
		for range n / batch {
			if err := engine.Publish(ctx, rdb, topic, batchOf()...); err != nil {
				return err
			}
		}
		sent += int64(n)
		return await(acknowledged(ctx, rdb, topic, &handled, sent))
	}}
}

// bare is XADD in pipelines, XREADGROUP and XACK, each of a batch, and nothing else.
func bare(t testing.TB, rdb *redis.Client) contender {
	ctx, stream := t.Context(), name("bare")
	require.NoError(t, rdb.XGroupCreateMkStream(ctx, stream, group, "0").Err())
	read := redis.XReadGroupArgs{Group: group, Consumer: "c", Streams: []string{stream, ">"}, Count: batch, Block: patience}
	consume := func(n int) error {
		for got := 0; got < n; {
			streams, err := rdb.XReadGroup(ctx, &read).Result()
			if err != nil {
				return err
			}
			var ids []string
			for _, m := range streams[0].Messages {
				ids = append(ids, m.ID)
			}
			if err := rdb.XAck(ctx, stream, group, ids...).Err(); err != nil {
				return err
			}
			got += len(ids)
		}
		return nil
	}
	return contender{"bare", func(n int) error {
		var g errgroup.Group
		g.Go(func() error { return consume(n) })
		for range n / batch {
			if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, m := range batchOf() {
					p.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []any{engine.Field, m}})
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return g.Wait()
	}}
}

// inParallel calls one n times, as many at once as parallel says.
func inParallel(n int, one func() error) error {
	var g errgroup.Group
	g.SetLimit(parallel)
	for range n {
		g.Go(one)
	}
	return g.Wait()
}

// watermillStream handles one message at a time for each subscriber and adds one for each
// call: many subscribers of one group and many publishers.
func watermillStream(t testing.TB, rdb *redis.Client) contender {
	ctx, topic := t.Context(), name("watermill")
	logger := watermill.NopLogger{}
	var handled atomic.Int64
	for i := range parallel {
		s, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
			Client: rdb, ConsumerGroup: group, Consumer: fmt.Sprint("c", i), OldestId: "0",
			BlockTime: time.Second, DisableIndefiniteInitialBlock: true,
		}, logger)
		require.NoError(t, err)
		messages, err := s.Subscribe(ctx, topic)
		require.NoError(t, err)
		go func() {
			for m := range messages {
				handled.Add(1)
				m.Ack()
			}
		}()
	}
	p, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: rdb}, logger)
	require.NoError(t, err)
	var sent int64
	return contender{"watermill", func(n int) error {
		if err := inParallel(n, func() error {
			return p.Publish(topic, message.NewMessage(watermill.NewUUID(), payload))
		}); err != nil {
			return err
		}
		sent += int64(n)
		return await(acknowledged(ctx, rdb, topic, &handled, sent))
	}}
}

// asynqQueue has as many workers as publishers.
func asynqQueue(t testing.TB, rdb *redis.Client) contender {
	queue := name("asynq")
	var handled atomic.Int64
	s := asynq.NewServerFromRedisClient(rdb, asynq.Config{
		Concurrency: parallel, Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 10 * time.Millisecond,
	})
	require.NoError(t, s.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		handled.Add(1)
		return nil
	})))
	t.Cleanup(s.Shutdown)
	client, inspect := asynq.NewClientFromRedisClient(rdb), asynq.NewInspectorFromRedisClient(rdb)
	var sent int64
	return contender{"asynq", func(n int) error {
		if err := inParallel(n, func() error {
			_, err := client.Enqueue(asynq.NewTask("bench", payload), asynq.Queue(queue))
			return err
		}); err != nil {
			return err
		}
		sent += int64(n)
		return await(func() (bool, error) {
			if handled.Load() < sent {
				return false, nil
			}
			info, err := inspect.GetQueueInfo(queue)
			return err == nil && info.Active == 0 && info.Pending == 0, err
		})
	}}
}
