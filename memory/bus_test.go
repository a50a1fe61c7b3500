package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

var (
	orders  = es.AggregateType{Context: "sales", Name: "order"}
	baskets = es.AggregateType{Context: "sales", Name: "basket"}
	errOops = errors.New("oops")
)

type step struct{ N int }

func (step) CommandName() string { return "step" }
func (step) EventName() string   { return "stepped" }

func command(id string, n int) es.Command { return es.NewCommand(orders.ID(id), step{n}) }

func sub(group string, types ...es.AggregateType) es.Subscription {
	return es.Subscription{Group: group, Aggregates: types}
}

// inbox is a command handler that remembers what it got.
type inbox struct {
	mu   sync.Mutex
	got  []string
	fail func(c es.Command, call int) error
}

func (b *inbox) handle(_ context.Context, c es.Command) (es.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, fmt.Sprintf("%s %d", c.Aggregate.ID, c.Body.(step).N))
	if b.fail == nil {
		return es.Result{}, nil
	}
	return es.Result{}, b.fail(c, len(b.got))
}

// read lets subscriptions run until nothing moves any more, in a bubble of fake time.
func read(t *testing.T, subscribe ...func(ctx context.Context) error) {
	ctx, stop := context.WithCancel(t.Context())
	errs := make([]error, len(subscribe))
	var wg sync.WaitGroup
	for i, f := range subscribe {
		wg.Go(func() { errs[i] = f(ctx) })
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	stop()
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err, "a done context is no error")
	}
}

func TestEveryGroupGetsEachMessageOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewCommandBus()
		var before, other, late inbox
		reader := func(group string, in *inbox) func(context.Context) error {
			return func(ctx context.Context) error { return b.Subscribe(ctx, sub(group, orders), in.handle) }
		}
		var want []string
		for n := range 30 {
			require.NoError(t, b.Send(t.Context(), command(fmt.Sprint(n%3), n)))
			want = append(want, fmt.Sprintf("%d %d", n%3, n))
		}
		read(t, reader("a", &before), reader("a", &before), reader("b", &other))
		require.ElementsMatch(t, want, before.got, "two readers share what is the group's")
		require.Equal(t, want, other.got, "one reader gets all in order")
		read(t, reader("c", &late))
		require.Equal(t, want, late.got, "a late group begins at the beginning")
		read(t, reader("a", &before))
		require.Len(t, before.got, 30, "a group goes on where it was")
	})
}

func TestSeveralReadersKeepTheOrderOfAnAggregate(t *testing.T) {
	t.Parallel()
	b := memory.NewCommandBus()
	const aggregates, each = 5, 40
	for n := range aggregates * each {
		require.NoError(t, b.Send(t.Context(), command(fmt.Sprint(n%aggregates), n)))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	last, busy, handled := map[string]int{}, map[string]bool{}, 0
	handle := func(_ context.Context, c es.Command) (es.Result, error) {
		id, n := c.Aggregate.ID, c.Body.(step).N
		mu.Lock()
		overlap, late := busy[id], n < last[id]
		busy[id], last[id] = true, n
		mu.Unlock()
		if overlap || late {
			t.Errorf("command %d of %s: overlap %t, late %t", n, id, overlap, late)
		}
		mu.Lock()
		defer mu.Unlock()
		busy[id] = false
		if handled++; handled == aggregates*each {
			stop()
		}
		return es.Result{}, nil
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := b.Subscribe(ctx, sub("g", orders), handle); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, aggregates*each, handled)
}

func TestOneBlockedAggregateDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewCommandBus()
		for n, id := range []string{"slow", "slow", "quick", "slow", "quick"} {
			require.NoError(t, b.Send(t.Context(), command(id, n)))
		}
		var in inbox
		handle := func(ctx context.Context, c es.Command) (es.Result, error) {
			if c.Aggregate.ID == "slow" {
				<-ctx.Done()
				return es.Result{}, ctx.Err()
			}
			return in.handle(ctx, c)
		}
		reader := func(ctx context.Context) error { return b.Subscribe(ctx, sub("g", orders), handle) }
		read(t, reader, reader)
		require.Equal(t, []string{"quick 2", "quick 4"}, in.got)
		var rest inbox
		read(t, func(ctx context.Context) error { return b.Subscribe(ctx, sub("g", orders), rest.handle) })
		require.Equal(t, []string{"slow 0", "slow 1", "slow 3"}, rest.got, "what was interrupted is handled later, in order")
	})
}

func TestAFailingHandlerIsCalledAgainThenTheMessageIsDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail  func(c es.Command, call int) error
		calls int
		log   string
	}{
		"LOST-11 an error for ever": {func(es.Command, int) error { return errOops }, 5, "oops"},
		"LOST-11 a panic for ever":  {func(es.Command, int) error { panic("argh") }, 5, "panic: argh"},
		"twice":                     {func(_ es.Command, call int) error { return errFrom(call < 3) }, 3, ""},
		"permanent":                 {func(es.Command, int) error { return es.Permanent(errOops) }, 1, "oops"},
		"a refusal is an answer":    {func(es.Command, int) error { return es.Refuse(errOops) }, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				b := memory.NewCommandBus()
				b.Logger = slog.New(slog.NewTextHandler(&log, nil))
				require.NoError(t, b.Send(t.Context(), command("bad", 1)))
				require.NoError(t, b.Send(t.Context(), command("good", 2)))
				var in inbox
				calls := 0
				in.fail = func(cmd es.Command, _ int) error {
					if cmd.Aggregate.ID == "good" {
						return nil
					}
					calls++
					return c.fail(cmd, calls)
				}
				read(t, func(ctx context.Context) error { return b.Subscribe(ctx, sub("g", orders), in.handle) })
				require.Len(t, in.got, c.calls+1)
				require.Equal(t, "good 2", in.got[1], "other aggregates do not wait for it")
				if c.log == "" {
					require.Empty(t, log.String())
					return
				}
				require.Contains(t, log.String(), c.log)
				require.Contains(t, log.String(), "group=g")
				require.Contains(t, log.String(), "sales.order/bad")
				require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")), "one line")
			})
		})
	}
}

func errFrom(failing bool) error {
	if failing {
		return errOops
	}
	return nil
}

func TestRetryAfterChoosesTheDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewCommandBus()
		require.NoError(t, b.Send(t.Context(), command("a", 1)))
		var at []time.Time
		in := inbox{fail: func(_ es.Command, call int) error {
			at = append(at, time.Now())
			return es.RetryAfter(errFrom(call == 1), 30*time.Second)
		}}
		read(t, func(ctx context.Context) error { return b.Subscribe(ctx, sub("g", orders), in.handle) })
		require.Len(t, at, 2)
		require.Equal(t, 30*time.Second, at[1].Sub(at[0]))
	})
}

func TestReadersOfSeveralTypesGetThemInTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewCommandBus()
		for n := range 3 {
			require.NoError(t, b.Send(t.Context(), command("o", n)))
		}
		require.NoError(t, b.Send(t.Context(), es.NewCommand(baskets.ID("b"), step{9})))
		var both, one inbox
		read(t,
			func(ctx context.Context) error { return b.Subscribe(ctx, sub("both", orders, baskets), both.handle) },
			func(ctx context.Context) error { return b.Subscribe(ctx, sub("one", baskets), one.handle) })
		require.Equal(t, []string{"o 0", "b 9", "o 1", "o 2"}, both.got)
		require.Equal(t, []string{"b 9"}, one.got)
	})
}
