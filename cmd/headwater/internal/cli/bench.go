package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/wire"
)

// load is the knobs of bench.
type load struct {
	seconds    float64
	concurrent int
	bytes      int
}

func (a *app) bench() *cobra.Command {
	var l load
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure this server with Headwater's own scripts (writes)",
		Long: `Measure appends, publishing and the way of a message through a group, each beside the bare
commands that it is made of. It writes under a context of its own, and removes what it
wrote; but it puts load on the server, so it asks before.`,
		Example: "  headwater bench --seconds 2 --yes",
		Args:    cobra.NoArgs,
	}
	f := c.Flags()
	f.Float64Var(&l.seconds, "seconds", 2, "how long to measure each")
	f.IntVar(&l.concurrent, "concurrent", 16, "how many callers at once")
	f.IntVar(&l.bytes, "bytes", 300, "the size of an event's body")
	yes := yesFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if l.seconds <= 0 || l.concurrent < 1 || l.bytes < 0 {
			return es.Invalid("--seconds and --concurrent must be positive")
		}
		if _, err := a.connect(c.Context()); err != nil {
			return err
		}
		if err := a.confirm(c.Context(), *yes, "put load on the server for about %.0f s", l.seconds*6); err != nil {
			return err
		}
		return a.measure(c.Context(), l)
	}
	return c
}

type figure struct {
	What      string  `json:"what"`
	PerSecond float64 `json:"per_s"`
	P50       int64   `json:"p50_us"`
	P99       int64   `json:"p99_us"`
}

func (a *app) measure(ctx context.Context, l load) error {
	b := &benchmark{rdb: a.rdb, load: l, t: es.AggregateType{Context: "headwater-bench-" + strings.ToLower(rand.Text()[:12]), Name: "bench"}}
	b.body = es.Raw(`{"text":"` + strings.Repeat("x", l.bytes) + `"}`)
	defer b.clean(context.WithoutCancel(ctx))
	if err := b.rdb.XGroupCreateMkStream(ctx, rediskey.State(b.t), "bench", "0").Err(); err != nil {
		return err
	}
	figures := []figure{}
	for _, m := range []struct {
		what string
		one  func(ctx context.Context, i int64) error
	}{
		{"PING", func(ctx context.Context, _ int64) error { return b.rdb.Ping(ctx).Err() }},
		{"bare ZADD + SADD", b.bareAppend},
		{"append (one event, with note)", b.append},
		{"bare XADD", b.bareAdd},
		{"publish", b.publish},
		{"round trip: publish, read, acknowledge", b.roundTrip},
	} {
		f, err := b.run(ctx, m.what, m.one)
		if err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
		figures = append(figures, f)
	}
	return a.show(map[string]any{"server": a.where, "concurrent": l.concurrent, "figures": figures}, func(w io.Writer) {
		fmt.Fprintf(w, "%s, %d callers, bodies of %d bytes\n\n", output.Clean(a.where), l.concurrent, l.bytes)
		t := output.Table{Head: []string{"WHAT", "PER S", "P50 µs", "P99 µs"}, Right: map[int]bool{1: true, 2: true, 3: true}}
		for _, f := range figures {
			t.Add(f.What, fmt.Sprintf("%.0f", f.PerSecond), f.P50, f.P99)
		}
		t.Write(w)
	})
}

type benchmark struct {
	load
	rdb  redis.UniversalClient
	t    es.AggregateType
	body es.Raw
	mu   sync.Mutex
	keys []string
}

// run calls one from many goroutines until the time is up.
func (b *benchmark) run(ctx context.Context, what string, one func(context.Context, int64) error) (figure, error) {
	var n atomic.Int64
	var wg sync.WaitGroup
	times, errs := make([][]time.Duration, b.concurrent), make([]error, b.concurrent)
	begin := time.Now()
	for c := range b.concurrent {
		wg.Go(func() {
			for errs[c] == nil && time.Since(begin).Seconds() < b.seconds {
				at := time.Now()
				errs[c] = one(ctx, n.Add(1))
				times[c] = append(times[c], time.Since(at))
			}
		})
	}
	wg.Wait()
	all := slices.Concat(times...)
	slices.Sort(all)
	for _, err := range errs {
		if err != nil {
			return figure{}, err
		}
	}
	return figure{what, float64(len(all)) / time.Since(begin).Seconds(), all[len(all)/2].Microseconds(), all[len(all)*99/100].Microseconds()}, nil
}

// wrote remembers keys to remove.
func (b *benchmark) wrote(keys ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = append(b.keys, keys...)
}

func (b *benchmark) commit(i int64) es.Commit {
	id := b.t.ID(fmt.Sprintf("b-%d", i))
	c := es.Commit{
		ID: id.ID, Aggregate: id, CommandID: id.ID, RequestID: id.ID, Version: 1, CreateTime: time.Now(),
		Events: []es.Event{{ID: id.ID, Name: "measured", Revision: es.DefaultRevision, BodyType: "measured", Body: b.body}},
	}
	c.Derive()
	return c
}

func (b *benchmark) append(ctx context.Context, i int64) error {
	c := b.commit(i)
	key := rediskey.EventKeys(c.Aggregate)
	b.wrote(key.Stream, key.Requests, key.IDs, key.Outbox)
	_, err := eventstore.New(b.rdb, wire.JSON()).Append(ctx, es.AppendOptions{Note: true}, c)
	return err
}

func (b *benchmark) bareAppend(ctx context.Context, i int64) error {
	key := fmt.Sprintf("headwater:{%s.%d}", b.t.Context, i)
	b.wrote(key, key+":r")
	_, err := b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, key, redis.Z{Score: 1, Member: string(b.body)})
		p.SAdd(ctx, key+":r", i)
		return nil
	})
	return err
}

func (b *benchmark) bareAdd(ctx context.Context, _ int64) error {
	return b.rdb.XAdd(ctx, &redis.XAddArgs{Stream: rediskey.Command(b.t), Values: []string{redisstream.Field, string(b.body)}}).Err()
}

func (b *benchmark) publish(ctx context.Context, _ int64) error {
	return redisstream.Publish(ctx, b.rdb, rediskey.Event(b.t), b.body)
}

// roundTrip is what one message costs a producer and a consumer together.
func (b *benchmark) roundTrip(ctx context.Context, _ int64) error {
	topic, group := rediskey.State(b.t), "bench"
	if err := redisstream.Publish(ctx, b.rdb, topic, b.body); err != nil {
		return err
	}
	read, err := b.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: group, Consumer: "c", Streams: []string{topic, ">"}, Count: 1, Block: time.Second}).Result()
	if err != nil {
		return err
	}
	return b.rdb.XAck(ctx, topic, group, read[0].Messages[0].ID).Err()
}

func (b *benchmark) clean(ctx context.Context) {
	b.wrote(rediskey.Command(b.t), rediskey.Event(b.t), rediskey.State(b.t))
	for page := range pages(b.keys, 500) {
		_, _ = b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // what is left has a name that tells what it was
			for _, key := range page {
				p.Unlink(ctx, key)
			}
			return nil
		})
	}
}
