package eventbus_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/recovery"
	"github.com/headwater-go/headwater/wire"
)

const patience = time.Minute

var (
	errMail  = errors.New("no mail today")
	errStock = errors.New("no such shelf")
)

// shop is an aggregate type of its own, with three functions in one group.
type shop struct {
	typ   es.AggregateType
	codec es.Codec
	sub   es.Subscription

	mu    sync.Mutex
	fails map[string]error
	calls []string
	last  es.Commit
}

func newShop() *shop {
	s := &shop{typ: es.AggregateType{Context: "shop", Alias: "t" + strings.ToLower(rand.Text()), Name: "order"}, fails: map[string]error{}}
	s.codec = wire.JSON(es.Types{Aggregate: s.typ, Events: []es.Type{{Body: Deposited{}}}})
	s.sub = es.Subscription{
		Group: "shop.Reactions", Aggregates: []es.AggregateType{s.typ}, Start: es.FromBeginning,
		MaxDeliveries: 3, Backoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond,
	}
	return s
}

func (s *shop) topic() string { return rediskey.Event(s.typ) }

func function(name string) es.Function {
	return es.Function{Kind: "EVENT", Context: "shop", Processor: "Reactions", Name: name}
}

func (s *shop) functions() (fs es.Functions) {
	for _, name := range []string{"mail", "stock", "bonus"} {
		fs = append(fs, es.EventFunction{Function: function(name), Handle: func(_ context.Context, c es.Commit) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls, s.last = append(s.calls, name), c
			return s.fails[name]
		}})
	}
	return fs
}

func (s *shop) fail(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[name] = err
}

// called returns the calls since it was asked last, once there are some that the predicate likes.
func (s *shop) called(t *testing.T, want ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.calls) >= len(want)
	}, patience, time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, want, s.calls)
	s.calls = nil
}

func (s *shop) commit(id string) es.Commit {
	return es.Commit{
		ID: id, Aggregate: s.typ.ID("o-1"), CommandID: "c-" + id, RequestID: "r-" + id, Version: 1,
		Events: []es.Event{es.NewEvent("e-"+id, Deposited{500})}, CreateTime: time.UnixMilli(1_700_000_000_000).UTC(),
	}
}

// run runs a subscriber until the test ends.
func run(t *testing.T, subscribe func(ctx context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- subscribe(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
}

func (s *shop) run(t *testing.T, b es.EventSubscriber) {
	t.Helper()
	run(t, func(ctx context.Context) error { return s.functions().Subscribe(ctx, b, s.sub) })
}

// letters are the dead letters, once there are as many and nothing is pending.
func (s *shop) letters(t *testing.T, rdb redis.UniversalClient, n int) (all []recovery.Letter) {
	t.Helper()
	require.Eventually(t, func() bool {
		all = nil
		for l, err := range recovery.NewDeadLetters(rdb).List(t.Context(), recovery.LetterFilter{Topics: []string{s.topic()}}, recovery.Letter{}) {
			require.NoError(t, err)
			all = append(all, l)
		}
		return len(all) == n
	}, patience, time.Millisecond)
	s.settled(t, rdb, s.sub.Group)
	slices.Reverse(all) // the oldest first
	return all
}

func (s *shop) settled(t *testing.T, rdb redis.UniversalClient, group string) {
	t.Helper()
	for _, stream := range []string{s.topic(), rediskey.Retry(s.topic(), group)} {
		require.Eventually(t, func() bool {
			i := slices.IndexFunc(rdb.XInfoGroups(t.Context(), stream).Val(), func(g redis.XInfoGroup) bool { return g.Name == group })
			if i < 0 {
				return rdb.Exists(t.Context(), stream).Val() == 0
			}
			g := rdb.XInfoGroups(t.Context(), stream).Val()[i]
			last := rdb.XInfoStream(t.Context(), stream).Val().LastGeneratedID
			return g.Pending == 0 && g.LastDeliveredID == last
		}, patience, time.Millisecond)
	}
}

func TestEachFunctionThatFailsLeavesALetterOfItsOwnAndIsReplayedAlone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newShop()
		b := eventbus.New(rdb, s.codec)
		s.fail("mail", errMail)
		s.fail("bonus", es.Permanent(errStock))
		s.run(t, b)
		require.NoError(t, b.Publish(t.Context(), s.commit("1")))
		s.called(t, "mail", "stock", "bonus", "mail", "mail")
		letters := s.letters(t, rdb, 2)
		for i, want := range []recovery.Letter{
			{Function: es.Function{Context: "shop", Processor: "Reactions", Name: "mail"}, Reason: recovery.Limit, Error: errMail.Error()},
			{Function: es.Function{Context: "shop", Processor: "Reactions", Name: "bonus"}, Reason: recovery.Permanent, Error: errStock.Error()},
		} {
			l := letters[i]
			require.Equal(t, want, recovery.Letter{Function: l.Function, Reason: l.Reason, Error: l.Error})
			require.Equal(t, []any{3, "o-1", s.sub.Group}, []any{l.Attempts, l.Aggregate, l.Group})
		}
		dead := recovery.NewDeadLetters(rdb)
		n, err := dead.Count(t.Context(), recovery.LetterFilter{Topics: []string{s.topic()}, Function: "bonus"})
		require.NoError(t, err)
		require.EqualValues(t, 1, n)

		_, err = dead.Replay(t.Context(), s.topic(), letters[0].ID)
		require.NoError(t, err)
		s.called(t, "mail", "mail", "mail")
		again := s.letters(t, rdb, 2)[1]
		require.Equal(t, letters[0].Function, again.Function, "it is of the same function")
		require.Equal(t, 1, again.Replays)
		s.fail("mail", nil)
		_, err = dead.Replay(t.Context(), s.topic(), again.ID)
		require.NoError(t, err)
		s.called(t, "mail")
		require.Equal(t, letters[1], s.letters(t, rdb, 1)[0], "the other one is left alone")
	})
}

func TestCompensationTakesTheCommitFromTheStore(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newShop()
		b := eventbus.New(rdb, s.codec)
		store := memory.NewEventStore()
		_, err := store.Append(t.Context(), es.AppendOptions{}, s.commit("1"))
		require.NoError(t, err)
		other := s.sub
		other.Group = "shop.Others"
		got := make(chan es.Commit, 10)
		run(t, func(ctx context.Context) error {
			return b.Subscribe(ctx, other, func(_ context.Context, c es.Commit) error { got <- c; return nil })
		})
		s.fail("stock", errStock)
		s.run(t, b)
		spoiled := s.commit("1")
		spoiled.Events[0].Body = Deposited{-1}
		require.NoError(t, b.Publish(t.Context(), spoiled))
		s.called(t, "mail", "stock", "bonus", "stock", "stock")
		l := s.letters(t, rdb, 1)[0]
		require.Eventually(t, func() bool { return len(got) == 1 }, 30*time.Second, 5*time.Millisecond, "the other group has it")
		require.NoError(t, rdb.XTrimMaxLen(t.Context(), s.topic(), 0).Err(), "the stream holds it no more")
		s.fail("stock", nil)
		_, err = b.Compensate(t.Context(), store, l)
		require.NoError(t, err)
		s.called(t, "stock")
		s.letters(t, rdb, 0)
		require.Equal(t, Deposited{500}, s.last.Events[0].Body)
		require.Equal(t, es.Header{
			{Key: es.HeaderCompensateID, Value: l.ID}, {Key: es.HeaderCompensateContext, Value: "shop"},
			{Key: es.HeaderCompensateProcessor, Value: "Reactions"}, {Key: es.HeaderCompensateFunction, Value: "stock"},
		}, s.last.Header)
		require.Empty(t, must(store.Find(t.Context(), s.typ.ID("o-1"), 1)).Header, "the store is as it was")
		require.Len(t, got, 1, "the other group has heard of it once")
		_, err = b.Compensate(t.Context(), store, l)
		require.ErrorIs(t, err, es.ErrNotFound, "it is no letter any more")
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestACommitThatTheStoreDoesNotHaveIsNotCompensated(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	s := newShop()
	b := eventbus.New(rdb, s.codec)
	store := memory.NewEventStore()
	s.fail("stock", es.Permanent(errStock))
	s.run(t, b)
	require.NoError(t, b.Publish(t.Context(), s.commit("lost")))
	l := s.letters(t, rdb, 1)[0]
	_, err := b.Compensate(t.Context(), store, l)
	require.ErrorIs(t, err, es.ErrCorrupt)
	require.NotErrorIs(t, err, es.ErrNotFound, "which would say that the letter is gone")
	_, err = store.Append(t.Context(), es.AppendOptions{}, s.commit("another"))
	require.NoError(t, err)
	_, err = b.Compensate(t.Context(), store, l)
	require.ErrorIs(t, err, es.ErrCorrupt)
	require.ErrorContains(t, err, "commit another at version 1")
	require.Equal(t, l, s.letters(t, rdb, 1)[0], "the letter stays")
	l.Fields = recovery.Fields{"other", "x"}
	_, err = b.Compensate(t.Context(), store, l)
	require.ErrorIs(t, err, es.ErrCorrupt)
}

func TestALetterOfNoFunctionIsReplayedAsItIs(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	s := newShop()
	b := eventbus.New(rdb, s.codec)
	var mu sync.Mutex
	fail := errMail
	got := make(chan es.Commit, 10)
	run(t, func(ctx context.Context) error {
		return b.Subscribe(ctx, s.sub, func(_ context.Context, c es.Commit) error {
			mu.Lock()
			defer mu.Unlock()
			if fail == nil {
				got <- c
			}
			return fail
		})
	})
	require.NoError(t, b.Publish(t.Context(), s.commit("1")))
	l := s.letters(t, rdb, 1)[0]
	require.Zero(t, l.Function)
	mu.Lock()
	fail = nil
	mu.Unlock()
	_, err := b.Compensate(t.Context(), memory.NewEventStore(), l)
	require.NoError(t, err)
	require.Empty(t, next(t, got).Header)
}

// A Kotlin node sends a commit again, to the stream that all groups read.
func TestWhatKotlinCompensatesReachesItsFunctionAndNoOther(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newShop()
		b := eventbus.New(rdb, s.codec)
		plain := s.sub
		plain.Group = "shop.Plain"
		got := make(chan es.Commit, 10)
		run(t, func(ctx context.Context) error {
			return b.Subscribe(ctx, plain, func(_ context.Context, c es.Commit) error { got <- c; return nil })
		})
		s.run(t, b)
		for _, f := range []es.Function{function("stock"), function("unknown"), {Context: "other", Processor: "Reactions", Name: "stock"}} {
			c := s.commit("1")
			c.Header.Compensate("0Tvcokgi0001001", f)
			require.NoError(t, b.Publish(t.Context(), c))
		}
		require.NoError(t, b.Publish(t.Context(), s.commit("2")))
		s.called(t, "stock", "mail", "stock", "bonus")
		require.Equal(t, "2", next(t, got).ID, "a plain handler is never meant")
		s.settled(t, rdb, s.sub.Group)
		s.settled(t, rdb, plain.Group)
		require.Empty(t, got)
		s.letters(t, rdb, 0)
	})
}

func TestFunctionsInMemory(t *testing.T) {
	t.Parallel()
	s, b := newShop(), memory.NewEventBus()
	s.fail("mail", errMail)
	s.run(t, b)
	plain, got := s.sub, make(chan es.Commit, 10)
	plain.Group = "shop.Plain"
	require.NoError(t, b.Prepare(t.Context(), plain))
	for _, f := range []es.Function{function("stock"), function("unknown")} {
		c := s.commit("1")
		c.Header.Compensate("1", f)
		require.NoError(t, b.Publish(t.Context(), c))
	}
	require.NoError(t, b.Publish(t.Context(), s.commit("2")))
	s.called(t, "stock", "mail", "stock", "bonus", "mail", "mail")
	run(t, func(ctx context.Context) error {
		return b.Subscribe(ctx, plain, func(_ context.Context, c es.Commit) error { got <- c; return nil })
	})
	require.Equal(t, "2", next(t, got).ID, "a plain handler is never meant")
}

func TestWhoTakesOverAReplayCallsItsFunctionAlone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newShop()
		b := eventbus.New(rdb, s.codec)
		require.NoError(t, b.Prepare(t.Context(), s.sub))
		require.NoError(t, b.Publish(t.Context(), s.commit("1")))
		dead := func(stream string) redis.XMessage {
			read := rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: s.sub.Group, Consumer: "dead", Streams: []string{stream, ">"}, Count: 1, Block: -1})
			require.NoError(t, read.Err())
			return read.Val()[0].Messages[0]
		}
		g := recovery.NewGroup(rdb, s.topic(), s.sub.Group, "dead")
		require.NoError(t, g.Bury(t.Context(), s.topic(), dead(s.topic()).ID, recovery.Letter{Reason: recovery.Limit}, es.FunctionFailure{Function: function("stock")}))
		_, err := recovery.NewDeadLetters(rdb).Replay(t.Context(), s.topic(), s.letters(t, rdb, 1)[0].ID)
		require.NoError(t, err)
		dead(rediskey.Retry(s.topic(), s.sub.Group))
		require.NoError(t, rdb.ZAdd(t.Context(), rediskey.Leases(s.topic(), s.sub.Group), redis.Z{Score: 1, Member: "dead"}).Err())
		s.sub.Sweep, s.sub.Lease = 20*time.Millisecond, time.Second
		s.run(t, b)
		s.called(t, "stock")
		s.settled(t, rdb, s.sub.Group)
		require.Empty(t, s.calls)
	})
}

func TestAFunctionThatIsGoneEndsInTheLettersAgain(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	s := newShop()
	b := eventbus.New(rdb, s.codec)
	s.fail("mail", errMail)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.functions().Subscribe(ctx, b, s.sub) }()
	require.NoError(t, b.Publish(t.Context(), s.commit("1")))
	l := s.letters(t, rdb, 1)[0]
	stop()
	require.NoError(t, <-ended)
	s.mu.Lock()
	s.calls = nil
	s.mu.Unlock()
	_, err := recovery.NewDeadLetters(rdb).Replay(t.Context(), s.topic(), l.ID)
	require.NoError(t, err)
	run(t, func(ctx context.Context) error { return s.functions()[1:].Subscribe(ctx, b, s.sub) })
	again := s.letters(t, rdb, 1)[0]
	require.Equal(t, recovery.Permanent, again.Reason)
	require.Equal(t, l.Function, again.Function)
	require.Contains(t, again.Error, "function shop.Reactions.mail")
	require.Empty(t, s.calls, "no other is taken for it")
}
