package eventstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	kernel "github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/statebus"
	"github.com/headwater-go/headwater/wire"
)

// BenchmarkCommand is everything on Redis in one process: send, decide, append, publish
// the commit and the state, and wait for PROCESSED. The commands create, so nothing is loaded. x-chain holds it against the same
// commands sent by plain go-redis, each caller's one after another, without a codec;
// x-reference against redis-benchmark with the script of the reference's contract.
func BenchmarkCommand(b *testing.B) {
	for _, callers := range []int{1, 50, 100} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			server := redistest.Shared(b)
			typ := benchType()
			service := newService(b, server, typ, false)
			chain := newChain(b, server.Client(b), service, typ)
			ceiling := reference(b, server, service.codec, typ)
			var mu sync.Mutex
			var ours, bares []time.Duration
			took, _ := measure(b, callers,
				func(_, n int) {
					began := time.Now()
					service.call(b, typ.ID(fmt.Sprintf("ours-order-%08d", n)))
					mu.Lock()
					ours = append(ours, time.Since(began))
					mu.Unlock()
				},
				func(_, n int) {
					began := time.Now()
					chain.run(b, n)
					mu.Lock()
					bares = append(bares, time.Since(began))
					mu.Unlock()
				})
			slices.Sort(ours)
			slices.Sort(bares)
			ceiling = (ceiling + reference(b, server, service.codec, typ)) / 2
			b.ReportMetric(float64(took[1])/float64(took[0]), "x-chain")
			b.ReportMetric(float64(b.N)/took[0].Seconds()/ceiling, "x-reference")
			b.ReportMetric(float64(ours[len(ours)/2])/float64(bares[len(bares)/2]), "p50-x-chain")
			b.ReportMetric(float64(ours[len(ours)*99/100])/float64(bares[len(bares)*99/100]), "p99-x-chain")
		})
	}
}

// BenchmarkCommandInMemory has its buses in memory and its store on Redis. x-reference is
// as above, x-one against one connection of redis-benchmark that waits for each reply.
func BenchmarkCommandInMemory(b *testing.B) {
	for _, callers := range []int{1, 50} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			server := redistest.Shared(b)
			typ := benchType()
			service := newService(b, server, typ, true)
			name, flags := "x-reference", pipelined
			if callers == 1 {
				name, flags = "x-one", single
			}
			ceiling := referenceWith(b, server, service.codec, typ, flags)
			took, _ := measure(b, callers, func(_, n int) { service.call(b, typ.ID(fmt.Sprintf("ours-order-%08d", n))) })
			ceiling = (ceiling + referenceWith(b, server, service.codec, typ, flags)) / 2
			b.ReportMetric(float64(b.N)/took[0].Seconds()/ceiling, name)
		})
	}
}

// BenchmarkWaiting holds commands that a caller waits for against the same ones that
// nobody waits for, until all are acknowledged; 100 at a time.
func BenchmarkWaiting(b *testing.B) {
	server := redistest.Shared(b)
	rdb := server.Client(b)
	typ := benchType()
	service := newService(b, server, typ, false)
	stream := rediskey.Command(typ)
	drained := func() {
		for {
			g, err := rdb.XInfoGroups(b.Context(), stream).Result()
			require.NoError(b, err)
			if g[0].Lag == 0 && g[0].Pending == 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	const batch = 2000
	var took [2]time.Duration
	for round := range max(b.N/batch, 1) {
		for i, call := range []func(*testing.B, es.AggregateID){service.call, service.send} {
			began := time.Now()
			var wg sync.WaitGroup
			for w := range 100 {
				wg.Go(func() {
					for n := w; n < batch; n += 100 {
						call(b, typ.ID(fmt.Sprintf("order-%d-%d-%d", i, round, n)))
					}
				})
			}
			wg.Wait()
			drained()
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "x-unwaited")
}

// service carries out commands and waits for them, as one process would.
type service struct {
	codec   es.Codec
	gateway *commandbus.Gateway
}

// newService has its buses on Redis, or in memory, where only the store is on Redis.
func newService(b *testing.B, server *redistest.Server, typ es.AggregateType, inMemory bool) *service {
	b.Helper()
	rdb := server.Client(b)
	ap, err := rdb.AutoPipeline()
	require.NoError(b, err)
	types := benchTypes(typ)
	types.Commands = []es.Type{{Body: putIn{}}}
	s := &service{codec: wire.JSON(types)}
	store := eventstore.New(ap, s.codec)
	repository := &kernel.Repository[stock]{Decider: stockDecider(typ), Store: store}
	var sender es.CommandSender
	var handlers es.CommandSubscriber
	group := es.Subscription{Group: "bench.CommandDispatcher", Aggregates: []es.AggregateType{typ}, Workers: 128}
	if inMemory {
		bus := memory.NewCommandBus()
		sender, handlers = bus, bus
		repository.Events, repository.States = memory.NewEventBus(), memory.NewStateBus()
	} else {
		bus := commandbus.New(rdb, s.codec)
		require.NoError(b, bus.Prepare(b.Context(), group))
		sender, handlers = commandbus.New(ap, s.codec), bus
		store.Publish = true
		repository.Events, repository.States = eventbus.New(ap, s.codec), statebus.New[stock](ap, s.codec)
	}
	s.gateway = commandbus.NewGateway(rdb, sender)
	repository.Notifier = s.gateway
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := handlers.Subscribe(ctx, group, repository.Handle); err != nil {
			b.Error(err)
		}
	})
	running.Go(func() {
		if err := s.gateway.Run(ctx); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() {
		stop()
		running.Wait()
		require.NoError(b, repository.Drain(context.Background()))
		require.NoError(b, ap.Close())
	})
	s.call(b, typ.ID("warm"))
	return s
}

func (s *service) call(b *testing.B, id es.AggregateID) {
	body := putIn{added{SKU: "A-1", Count: 2, Note: "leave it at the door"}}
	if _, err := s.gateway.SendAndWait(b.Context(), es.NewCreateCommand(id, body), es.Wait{Stage: es.StageProcessed}); err != nil {
		b.Error(err)
	}
}

func (s *service) send(b *testing.B, id es.AggregateID) {
	if err := s.gateway.Send(b.Context(), es.NewCreateCommand(id, putIn{added{SKU: "A-1", Count: 2, Note: "leave it at the door"}})); err != nil {
		b.Error(err)
	}
}

// chain is what one command costs at least, with the bytes that the service writes.
type chain struct {
	rdb                                *redis.Client
	command, event, state, answer      string
	commandData, commitData, stateData []byte
	appends                            []bare
}

func newChain(b *testing.B, rdb *redis.Client, s *service, typ es.AggregateType) *chain {
	b.Helper()
	c := &chain{rdb: rdb, command: "bare." + typ.Name + ":command", event: "bare." + typ.Name + ":event", state: "bare." + typ.Name + ":state", answer: "bare." + typ.Name + ":answer"}
	require.NoError(b, rdb.XGroupCreateMkStream(b.Context(), c.command, "bare", "0").Err())
	id := typ.ID("bare-order-00000000")
	command := es.NewCreateCommand(id, putIn{added{SKU: "A-1", Count: 2, Note: "leave it at the door"}})
	command.Complete(es.NewRandomIDs(), time.Now())
	commit := benchCommit(id, 1)
	var err error
	c.commandData, err = s.codec.EncodeCommand(&command)
	require.NoError(b, err)
	c.commitData, err = s.codec.EncodeCommit(&commit)
	require.NoError(b, err)
	c.stateData, err = s.codec.EncodeStateEvent(&es.StateEvent{Commit: commit, State: stock{1}})
	require.NoError(b, err)
	c.appends = make([]bare, b.N)
	for n := range c.appends {
		c.appends[n] = bareAppend(b, s.codec, benchCommit(typ.ID(fmt.Sprintf("bare-order-%08d", n)), 1))
	}
	return c
}

func (c *chain) run(b *testing.B, n int) {
	ctx := b.Context()
	add := func(stream string, data []byte) {
		if err := c.rdb.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []any{"msg", data}}).Err(); err != nil {
			b.Error(err)
		}
	}
	add(c.command, c.commandData)
	read, err := c.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "bare", Consumer: "bare", Streams: []string{c.command, ">"}, Count: 1, Block: -1}).Result()
	if err != nil || len(read[0].Messages) != 1 {
		b.Error(read, err)
		return
	}
	c.appends[n].send(b, c.rdb)
	add(c.event, c.commitData)
	add(c.state, c.stateData)
	if err := c.rdb.XAck(ctx, c.command, "bare", read[0].Messages[0].ID).Err(); err != nil {
		b.Error(err)
	}
	add(c.answer, []byte("ok"))
}
