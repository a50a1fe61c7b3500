package estest

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var eventChecks = []check[EventBus]{
	{"commits arrive whole", eventWhole},
	{"the commits of one call arrive in order", eventInOrder},
	{"nothing to publish is no error", eventNone},
	{"commits of two aggregates in one call are refused", eventTwoAggregates},
	{"a commit that cannot be is refused before anything is sent", eventInvalid},
}

// publishedTo subscribes a new group and returns the n commits that arrive, and no more.
func publishedTo(t *testing.T, k kit[EventBus], n int) []es.Commit {
	t.Helper()
	return arriving(t, n, func(ctx context.Context, got chan<- es.Commit) error {
		return k.store.Subscribe(ctx, newSubscription(k.typ), func(_ context.Context, c es.Commit) error {
			got <- c
			return nil
		})
	})
}

// arriving runs a subscription until n messages came; no more may come.
func arriving[M any](t *testing.T, n int, subscribe func(ctx context.Context, got chan<- M) error) []M {
	t.Helper()
	messages := make(chan M, 1000)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- subscribe(ctx, messages) }()
	var got []M
	for len(got) < n {
		select {
		case m := <-messages:
			got = append(got, m)
		case <-time.After(patience):
			require.Len(t, got, n, "messages that arrived")
		}
	}
	stop()
	require.NoError(t, <-ended)
	require.Empty(t, messages)
	return got
}

func eventWhole(t *testing.T, k kit[EventBus]) {
	text := "\x00\u2028<>&\"\\é😀\ufeff"
	sent := commitOf(k.typ.ID("订单-😀").InTenant("t-1"), 1, Created{text},
		Changed{Number: math.MinInt64, Items: []string{}, Labels: map[string]string{"": text}}, Measured{0.1})
	sent.Header = append(sent.Header, es.HeaderField{Key: "a", Value: "é\n"})
	require.NoError(t, k.store.Publish(t.Context(), sent))
	requireSame(t, sent, publishedTo(t, k, 1)[0])
}

func eventInOrder(t *testing.T, k kit[EventBus]) {
	sent := commitsOf(k.typ.ID("a-1"), 1, 100)
	require.NoError(t, k.store.Publish(t.Context(), sent...))
	for i, c := range publishedTo(t, k, len(sent)) {
		requireSame(t, sent[i], c)
	}
}

func eventNone(t *testing.T, k kit[EventBus]) {
	require.NoError(t, k.store.Publish(t.Context()))
}

func eventTwoAggregates(t *testing.T, k kit[EventBus]) {
	first, other, tenants := commitOf(k.typ.ID("a-1"), 1), commitOf(k.typ.ID("a-2"), 2), commitOf(k.typ.ID("a-1").InTenant("t-2"), 2)
	for _, c := range []es.Commit{other, tenants} {
		requireAt(t, k.store.Publish(t.Context(), first, c), es.ErrInvalid, es.Error{Aggregate: c.Aggregate, Version: 2, RequestID: c.RequestID})
	}
	fence := commitOf(k.typ.ID("a-1"), 3)
	require.NoError(t, k.store.Publish(t.Context(), fence))
	requireSame(t, fence, publishedTo(t, k, 1)[0])
}

func eventInvalid(t *testing.T, k kit[EventBus]) {
	good, bad := commitOf(k.typ.ID("a-1"), 1), badCommits(k.typ.ID("a-1"))
	for what, c := range bad {
		t.Log(what)
		requireAt(t, k.store.Publish(t.Context(), good, c), es.ErrInvalid, es.Error{Aggregate: c.Aggregate, Version: c.Version, RequestID: c.RequestID})
	}
	large := commitOf(k.typ.ID("a-1"), 2, Created{strings.Repeat("x", 16<<20)})
	require.ErrorIs(t, k.store.Publish(t.Context(), good, large), es.ErrTooLarge)
	fence := commitOf(k.typ.ID("a-1"), 3)
	require.NoError(t, k.store.Publish(t.Context(), fence))
	requireSame(t, fence, publishedTo(t, k, 1)[0])
}

// badCommits are commits at version 2 or at none that no bus can carry.
func badCommits(id es.AggregateID) map[string]es.Commit {
	of := func(change func(*es.Commit)) es.Commit { return edited(commitOf(id, 2), change) }
	bad := map[string]es.Commit{
		"no events":    of(func(c *es.Commit) { c.Events = nil }),
		"no body":      of(func(c *es.Commit) { c.Events[0].Body = nil }),
		"no version":   of(func(c *es.Commit) { c.Version = 0 }),
		"no revision":  of(func(c *es.Commit) { c.Events[0].Revision = "" }),
		"NaN":          of(func(c *es.Commit) { c.Events[0].Body = Measured{math.NaN()} }),
		"a function":   of(func(c *es.Commit) { c.Events[0].Body = Nested{func() {}} }),
		"invalid text": of(func(c *es.Commit) { c.Events[0].Body = Created{"a\xffb"} }),
	}
	for what, text := range badTexts() {
		bad["id "+what] = of(func(c *es.Commit) { c.ID = text })
		bad["request id "+what] = of(func(c *es.Commit) { c.RequestID = text })
		bad["command id "+what] = of(func(c *es.Commit) { c.CommandID = text })
		bad["event id "+what] = of(func(c *es.Commit) { c.Events[0].ID = text })
		bad["event name "+what] = of(func(c *es.Commit) { c.Events[0].Name = text })
	}
	return bad
}
