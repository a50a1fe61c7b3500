package estest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var errOops = errors.New("oops")

var failureChecks = []busCheck{
	{"a failing handler is called again, and told how often", busRetries},
	{"LOST-11 a panic is an error: others go on, and it is called again", busPanics},
	{"LOST-11 a message that fails for ever is given up after MaxDeliveries", busLimit},
	{"a permanent error is not retried", busPermanent},
	{"what follows in an aggregate waits for the one that is retried; others go on", busParks},
	{"RetryAfter chooses the delay", busRetryAfter},
	{"a server that is unavailable costs no attempt", busUnavailable},
}

// failing is a handler that fails n times on the first message of an aggregate.
func failing(n int, err error) func(context.Context, received) error {
	var calls atomic.Int64
	return func(_ context.Context, c received) error {
		if c.number == 1 && int(calls.Add(1)) <= n {
			return err
		}
		return nil
	}
}

func busRetries(t *testing.T, k busKit) {
	s := k.subscription()
	r := k.read(t, s, failing(3, errOops))
	k.sendAll(t, k.letters("a-1", 2)...)
	got := r.wait(t, 5)
	require.Equal(t, []int{1, 1, 1, 1, 2}, numbersOf(got))
	require.Equal(t, []int{1, 2, 3, 4, 1}, attemptsOf(got))
	require.False(t, got[1].Recovered, "no other consumer had it")
	require.Equal(t, got[0].Delivery.ID, got[3].Delivery.ID)
}

func busPanics(t *testing.T, k busKit) {
	var failed atomic.Bool
	r := k.read(t, k.subscription(), func(_ context.Context, c received) error {
		if c.aggregate.ID == "bad" && !failed.Swap(true) {
			panic(errOops)
		}
		return nil
	})
	bad, good := k.letters("bad", 2), k.letters("good", 2)
	k.sendAll(t, bad[0], good[0], bad[1], good[1])
	got := r.wait(t, 5)
	require.Equal(t, []int{1, 1, 2}, numbersOf(ofAggregate(got, "bad")))
	require.Equal(t, good, lettersOf(ofAggregate(got, "good")))
}

func ofAggregate(calls []received, id string) []received {
	return slices.DeleteFunc(slices.Clone(calls), func(c received) bool { return c.aggregate.ID != id })
}

func busLimit(t *testing.T, k busKit) {
	s := k.subscription()
	s.MaxDeliveries = 3
	r := k.read(t, s, failing(1000, errOops))
	k.sendAll(t, k.letters("a-1", 3)...)
	require.Equal(t, []int{1, 1, 1, 2, 3}, numbersOf(r.wait(t, 5)))
}

func busPermanent(t *testing.T, k busKit) {
	r := k.read(t, k.subscription(), failing(1000, es.Permanent(errOops)))
	k.sendAll(t, k.letters("a-1", 3)...)
	require.Equal(t, []int{1, 2, 3}, numbersOf(r.wait(t, 3)))
}

func busParks(t *testing.T, k busKit) {
	s := k.subscription()
	s.MaxDeliveries, s.Workers = 10_000, 1
	var others atomic.Int64
	r := k.read(t, s, func(_ context.Context, c received) error {
		if c.aggregate.ID != "a-1" {
			others.Add(1)
			return nil
		}
		if others.Load() < 3 {
			return errOops
		}
		return nil
	})
	k.sendAll(t, append(k.letters("a-1", 3), k.letters("b-1", 3)...)...)
	eventually(t, func() bool { return others.Load() == 3 && slices.Contains(numbersOf(ofAggregate(r.calls(), "a-1")), 3) })
	k.sendAll(t, k.letters("fence", 1)...)
	eventually(t, func() bool { return others.Load() == 4 })
	numbers := numbersOf(ofAggregate(r.calls(), "a-1"))
	require.Equal(t, []int{1, 2, 3}, slices.Compact(numbers), "in order, once the first is done")
	require.Equal(t, 1, count(numbers, 2))
	require.Equal(t, 1, count(numbers, 3))
}

func count(numbers []int, of int) (n int) {
	for _, number := range numbers {
		if number == of {
			n++
		}
	}
	return n
}

func busRetryAfter(t *testing.T, k busKit) {
	const delay = 200 * time.Millisecond
	var failed, again time.Time
	r := k.read(t, k.subscription(), func(_ context.Context, c received) error {
		if c.Attempt > 1 {
			again = time.Now()
			return nil
		}
		failed = time.Now()
		return es.RetryAfter(errOops, delay)
	})
	k.sendAll(t, k.letters("a-1", 1)...)
	r.wait(t, 2)
	r.end(t)
	require.GreaterOrEqual(t, again.Sub(failed), delay, "though the backoff is shorter")
}

func busUnavailable(t *testing.T, k busKit) {
	s := k.subscription()
	s.MaxDeliveries = 2
	r := k.read(t, s, failing(4, es.ErrUnavailable))
	k.sendAll(t, k.letters("a-1", 2)...)
	got := r.wait(t, 6)
	require.Equal(t, []int{1, 1, 1, 1, 1, 2}, numbersOf(got))
	require.Equal(t, []int{1, 1, 1, 1, 1, 1}, attemptsOf(got))
}
