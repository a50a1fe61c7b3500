package commandbus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/wire"
)

// side is a process that waits, or carries out, on a Redis of its own choice.
type side struct {
	typ     es.AggregateType
	rdb     redis.UniversalClient
	bus     *commandbus.Bus
	gateway *commandbus.Gateway
}

func newSide(t *testing.T, rdb redis.UniversalClient) *side {
	t.Helper()
	typ := newType()
	bus := commandbus.New(rdb, wire.JSON(es.Types{Aggregate: typ, Commands: []es.Type{{Body: pay{}}}}))
	return &side{typ, rdb, bus, commandbus.NewGateway(rdb, bus)}
}

func (s *side) pay(id string, n int) es.Command { return es.NewCommand(s.typ.ID(id), pay{n}) }

// work carries commands out until the test ends, with as many workers.
func (s *side) work(t *testing.T, workers int, h es.CommandHandler) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	sub := es.Subscription{Group: "g", Aggregates: []es.AggregateType{s.typ}, Workers: workers, Backoff: time.Millisecond, MaxDeliveries: 2}
	require.NoError(t, s.bus.Prepare(ctx, sub))
	ended := make(chan error, 1)
	go func() { ended <- s.bus.Subscribe(ctx, sub, h) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
}

// answer is a handler that does nothing but tell: the version is the command's amount.
func answer(n es.Notifier) es.CommandHandler {
	return func(ctx context.Context, c es.Command) (es.Result, error) {
		n.Notify(ctx, c.Header, es.Signal{ID: c.ID, CommandID: c.ID, Aggregate: c.Aggregate, Stage: es.StageProcessed, Version: c.Body.(pay).Cents})
		return es.Result{}, nil
	}
}

// replyKeys are the keys of waiting processes that there are, for a server of the test's own.
func replyKeys(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "headwater:{reply.*").Result()
	require.NoError(t, err)
	return keys
}

// WAIT-01 and WAIT-05: ten thousand at once, carried out at once and in any order; each gets
// its own, and none waits for its deadline.
func TestWAIT01_05_TenThousandWaitersGetEachItsOwn(t *testing.T) {
	t.Parallel()
	s := newSide(t, redistest.Shared(t).Client(t))
	run(t, s.gateway)
	s.work(t, 64, answer(commandbus.NewNotifier(s.rdb)))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const n = 10_000
	var wrong, failed atomic.Int64
	var callers sync.WaitGroup
	conns := s.rdb.PoolStats().TotalConns
	for i := range n {
		callers.Go(func() {
			r, err := s.gateway.SendAndWait(ctx, s.pay(fmt.Sprint("a-", rand.IntN(1000)), i+1), es.Wait{})
			if err != nil {
				failed.Add(1)
			} else if r.Version != i+1 {
				wrong.Add(1)
			}
		})
	}
	callers.Wait()
	require.Zero(t, failed.Load())
	require.Zero(t, wrong.Load())
	require.Zero(t, s.gateway.Waiting())
	require.LessOrEqual(t, s.rdb.PoolStats().TotalConns, max(conns, uint32(10*runtime.GOMAXPROCS(0)))+1, "connections do not depend on waiters")
}

// WAIT-02: replies on the reading connection are lost, and nobody misses his answer.
func TestWAIT02_AnswersAreReadByPosition(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	p := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr = p.Addr
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	s := newSide(t, rdb)
	run(t, s.gateway)
	s.work(t, 8, answer(commandbus.NewNotifier(server.Client(t))))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for round := range 20 {
		p.DropReply("XREAD")
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				r, err := s.gateway.SendAndWait(ctx, s.pay(fmt.Sprint("a-", i), round+1), es.Wait{})
				if err != nil || r.Version != round+1 {
					t.Errorf("round %d: version %d, %v", round, r.Version, err)
				}
			})
		}
		callers.Wait()
	}
	require.Greater(t, p.Count("XREAD"), 20)
}

// WAIT-02: an answer that nobody sent is found in the store.
func TestWAIT02_ALostAnswerIsFoundInTheStore(t *testing.T) {
	t.Parallel()
	s := newSide(t, redistest.Shared(t).Client(t))
	store := memory.NewEventStore()
	s.gateway.Finder = store
	run(t, s.gateway)
	s.work(t, 1, func(ctx context.Context, c es.Command) (es.Result, error) {
		commit := es.Commit{ID: "commit-" + c.ID, Aggregate: c.Aggregate, CommandID: c.ID, RequestID: c.RequestID, Version: 1, Events: []es.Event{es.NewEvent("e-"+c.ID, deposited{1})}}
		_, err := store.Append(ctx, es.AppendOptions{}, commit)
		return es.Result{}, err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	r, err := s.gateway.SendAndWait(ctx, s.pay("a-1", 7), es.Wait{})
	require.NoError(t, err)
	require.Equal(t, 1, r.Version)
	require.Equal(t, es.StageProcessed, r.Stage)

	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	r, err = s.gateway.SendAndWait(short, s.pay("a-2", 7), es.Wait{Stage: es.StageSnapshot})
	require.ErrorIs(t, err, es.ErrUncertain)
	require.Equal(t, es.StageProcessed, r.Stage, "that much is known")
}

// WAIT-03 and WAIT-04: who gave up leaves nothing, and an answer to who is gone makes nothing.
func TestWAIT03_04_WhoGaveUpLeavesNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	s := newSide(t, rdb)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.gateway.Run(ctx) }()
	release := make(chan struct{})
	notifier := commandbus.NewNotifier(rdb)
	var header atomic.Value
	s.work(t, 64, func(ctx context.Context, c es.Command) (es.Result, error) {
		<-release
		header.Store(c.Header)
		return answer(notifier)(ctx, c)
	})
	const n = 1000
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := s.gateway.SendAndWait(short, s.pay(fmt.Sprint("a-", i), 1), es.Wait{})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	require.Zero(t, s.gateway.Waiting())
	sent := rdb.XLen(t.Context(), s.typ.String()+":command").Val()
	require.Positive(t, sent)
	close(release)
	require.Eventually(t, func() bool { return s.gateway.Strays() == sent }, time.Minute, 5*time.Millisecond, "counted and dropped")
	keys := replyKeys(t, rdb)
	require.Len(t, keys, 2)
	for _, key := range keys {
		require.Positive(t, rdb.PTTL(t.Context(), key).Val(), "%s expires", key)
	}
	stop()
	require.NoError(t, <-ended)
	require.Empty(t, replyKeys(t, rdb))

	notifier.Notify(t.Context(), header.Load().(es.Header), es.Signal{Stage: es.StageProcessed})
	require.NoError(t, notifier.Drain(t.Context()))
	require.Empty(t, replyKeys(t, rdb), "an answer to a process that is gone makes no key")
}
