package commandbus_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/statebus"
	"github.com/headwater-go/headwater/wire"
)

// bank is everything on one Redis: a process that carries out, and one that waits.
type bank struct {
	typ     es.AggregateType
	bus     *commandbus.Bus
	store   *eventstore.Store
	handle  es.CommandHandler
	handled atomic.Int64
	gateway *commandbus.Gateway
}

func newBank(t *testing.T, rdb redis.UniversalClient) *bank {
	t.Helper()
	b := &bank{typ: newType()}
	codec := wire.JSON(es.Types{Aggregate: b.typ, Commands: []es.Type{{Body: Deposit{}}}, Events: []es.Type{{Body: deposited{}}}})
	b.bus, b.store = commandbus.New(rdb, codec), eventstore.New(rdb, codec)
	decider := account
	decider.Type = b.typ
	r := &aggregate.Repository[int64]{
		Decider: decider, Store: b.store, Events: eventbus.New(rdb, codec), States: statebus.New[int64](rdb, codec), Notifier: commandbus.NewNotifier(rdb),
	}
	b.handle = func(ctx context.Context, c es.Command) (es.Result, error) {
		b.handled.Add(1)
		return r.Handle(ctx, c)
	}
	b.gateway = commandbus.NewGateway(rdb, b.bus)
	b.gateway.Finder = b.store
	run(t, b.gateway)
	return b
}

func (b *bank) work(t *testing.T) {
	t.Helper()
	(&side{typ: b.typ, bus: b.bus}).work(t, 16, b.handle)
}

func (b *bank) deposit(id string, cents int64) es.Command {
	c := es.NewCommand(b.typ.ID(id), Deposit{cents})
	c.AllowCreate = true
	return c
}

func TestEverythingOnRedisFromTheCallerAndBack(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		b := newBank(t, rdb)
		b.work(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for version := 1; version <= 3; version++ {
			r, err := b.gateway.SendAndWait(ctx, b.deposit("a-1", 100), es.Wait{})
			require.NoError(t, err)
			require.Equal(t, version, r.Version)
			require.Equal(t, es.StageProcessed, r.Stage)
			require.Equal(t, b.typ.ID("a-1"), r.Aggregate)
		}
		require.EqualValues(t, 3, rdb.XLen(ctx, b.typ.String()+":event").Val(), "published before it is told")
		r, err := b.gateway.SendAndWait(ctx, b.deposit("a-1", 100), es.Wait{Stage: es.StageSnapshot})
		require.NoError(t, err)
		require.Equal(t, es.StageSnapshot, r.Stage)
		require.Equal(t, 4, r.Version)

		_, err = b.gateway.SendAndWait(ctx, b.deposit("a-1", -1), es.Wait{Stage: es.StageProjected})
		require.ErrorIs(t, err, es.ErrRefused)
		require.ErrorContains(t, err, "not a deposit")
		unknown := es.NewCommand(b.typ.ID("a-2"), Deposit{1})
		_, err = b.gateway.SendAndWait(ctx, unknown, es.Wait{})
		require.ErrorIs(t, err, es.ErrNotFound)
		late := b.deposit("a-1", 1)
		late.Expected = new(int)
		*late.Expected = 1
		_, err = b.gateway.SendAndWait(ctx, late, es.Wait{})
		require.ErrorIs(t, err, es.ErrExpectedVersion)
		_, err = b.gateway.SendAndWait(ctx, es.NewCreateCommand(b.typ.ID("a-1"), Deposit{1}), es.Wait{})
		require.ErrorIs(t, err, es.ErrVersionConflict)
		require.ErrorIs(t, err, es.ErrDuplicateAggregate)
	})
}

// WAIT-07: the same request, sent twice and waited for twice, is carried out once and
// answers both; one that is sent after its caller gave up as well.
func TestWAIT07_TheSameRequestIsCarriedOutOnceAndAnswersAll(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		b := newBank(t, rdb)
		c := b.deposit("a-1", 100)
		c.RequestID = "r-1"
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := b.gateway.SendAndWait(short, c, es.Wait{})
		require.ErrorIs(t, err, es.ErrUncertain, "nobody works yet")

		var versions [3]int
		var callers sync.WaitGroup
		for i := range versions {
			callers.Go(func() {
				r, err := b.gateway.SendAndWait(t.Context(), c, es.Wait{})
				if versions[i] = r.Version; err != nil {
					t.Error(err)
				}
			})
		}
		require.Eventually(t, func() bool { return b.gateway.Waiting() == len(versions) }, time.Minute, time.Millisecond)
		b.work(t)
		callers.Wait()
		require.Equal(t, [3]int{1, 1, 1}, versions)
		last, err := b.store.Last(t.Context(), c.Aggregate)
		require.NoError(t, err)
		require.Equal(t, 1, last.Version, "carried out once")
		require.Eventually(t, func() bool { return b.handled.Load() == 4 }, time.Minute, time.Millisecond)

		other := b.deposit("a-1", 7)
		other.RequestID = "r-1"
		_, err = b.gateway.SendAndWait(t.Context(), other, es.Wait{})
		require.ErrorIs(t, err, es.ErrDuplicateRequest, "another body")
	})
}

// A master is replaced while callers wait: each is answered, or told that nothing is known.
func TestCallersAreAnsweredAcrossAFailover(t *testing.T) {
	t.Parallel()
	sentinel := redistest.NewSentinel(t)
	b := newBank(t, sentinel.Client(t))
	b.work(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := b.gateway.SendAndWait(ctx, b.deposit("a-0", 1), es.Wait{})
	require.NoError(t, err)
	sentinel.Failover(t)
	for i := range 20 {
		c := b.deposit(fmt.Sprint("a-", i), 1)
		c.RequestID = fmt.Sprint("r-", i)
		require.Eventually(t, func() bool {
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			_, err := b.gateway.SendAndWait(short, c, es.Wait{})
			return err == nil
		}, time.Minute, 10*time.Millisecond)
	}
}
