package es_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// oneBus hands its subscriber one commit, again and again while a call fails and is no
// permanent failure, as the buses do.
type oneBus struct {
	header es.Header
	failed []es.FunctionFailure
	tries  int
	sub    es.Subscription
}

func (b *oneBus) Subscribe(ctx context.Context, s es.Subscription, h func(context.Context, es.Commit) error) error {
	b.sub = s
	var err error
	for range b.tries {
		err = h(es.WithDelivery(ctx, es.Delivery{Failed: b.failed}), es.Commit{ID: "c", Header: b.header})
		if b.failed = es.FailuresOf(err, b.failed); err == nil || es.IsPermanent(err) {
			return err
		}
	}
	return err
}

var errTest = errors.New("it fails")

// calls counts the calls of three functions, which answer what is given.
type calls map[string]int

func (c calls) functions(answers map[string]error) es.Functions {
	var fs es.Functions
	for _, name := range []string{"a", "b", "c"} {
		fs = append(fs, es.EventFunction{Function: es.Function{Kind: "EVENT", Context: "shop", Processor: "Mails", Name: name}, Handle: func(context.Context, es.Commit) error {
			c[name]++
			return answers[name]
		}})
	}
	return fs
}

func named(name string) es.Function {
	return es.Function{Context: "shop", Processor: "Mails", Name: name}
}

func TestOnlyFunctionsThatFailedAreCalledAgain(t *testing.T) {
	t.Parallel()
	errOnce := es.Permanent(errors.New("never"))
	for _, c := range []struct {
		what      string
		answers   map[string]error
		calls     calls
		permanent bool
		text      string
	}{
		{"none", nil, calls{"a": 1, "b": 1, "c": 1}, false, ""},
		{"one", map[string]error{"b": errTest}, calls{"a": 1, "b": 3, "c": 1}, false, "function shop.Mails.b: it fails"},
		{"two", map[string]error{"a": errTest, "b": errTest}, calls{"a": 3, "b": 3, "c": 1}, false, "function shop.Mails.a: it fails\nfunction shop.Mails.b: it fails"},
		{"for good", map[string]error{"b": errOnce}, calls{"a": 1, "b": 1, "c": 1}, true, "function shop.Mails.b: never"},
		{"both", map[string]error{"a": errOnce, "b": errTest}, calls{"a": 1, "b": 3, "c": 1}, false, "function shop.Mails.a: never\nfunction shop.Mails.b: it fails"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			got := calls{}
			err := got.functions(c.answers).Subscribe(t.Context(), &oneBus{tries: 3}, es.Subscription{Group: "g"})
			require.Equal(t, c.calls, got)
			if c.text == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.text)
			require.Equal(t, c.permanent, es.IsPermanent(err))
		})
	}
}

func TestErrorsOfFunctionsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	err := error(&es.FunctionsError{Failures: []es.FunctionFailure{
		{Function: named("a"), Err: es.Permanent(es.ErrCorrupt)}, {Function: named("b"), Err: es.RetryAfter(es.ErrUnavailable, time.Minute)},
	}})
	require.ErrorIs(t, err, es.ErrUnavailable)
	d, ok := es.RetryDelay(err)
	require.True(t, ok)
	require.Equal(t, time.Minute, d)
	require.False(t, es.IsPermanent(err))
	require.Equal(t, []es.FunctionFailure{{Function: named("z")}}, es.FailuresOf(errTest, []es.FunctionFailure{{Function: named("z")}}), "nothing new is known")
}

func TestAPanicOfAFunctionIsItsOwn(t *testing.T) {
	t.Parallel()
	got := calls{}
	fs := got.functions(nil)
	fs[0].Handle = func(context.Context, es.Commit) error { panic("mad") }
	err := fs.Subscribe(t.Context(), &oneBus{tries: 1}, es.Subscription{Group: "g"})
	require.ErrorIs(t, err, es.ErrPanic)
	require.ErrorContains(t, err, "functions_test.go")
	require.Equal(t, calls{"b": 1, "c": 1}, got)
}

func TestACommitThatIsSentAgainIsForItsFunctionAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    es.Function
		want calls
	}{
		{named("b"), calls{"b": 1}},
		{named("x"), calls{}},
		{es.Function{Context: "shop", Processor: "Other", Name: "b"}, calls{}},
		{es.Function{Context: "other", Processor: "Mails", Name: "b"}, calls{}},
	} {
		bus, got := &oneBus{tries: 1}, calls{}
		bus.header.Compensate("id-1", c.f)
		require.NoError(t, got.functions(nil).Subscribe(t.Context(), bus, es.Subscription{Group: "g"}))
		require.Equal(t, c.want, got)
		require.Equal(t, len(c.want) == 0, bus.sub.Skips(t.Context(), bus.header), "the bus need not even ask")
		require.True(t, es.Subscription{}.Skips(t.Context(), bus.header), "a handler without a name is never meant")
		require.False(t, es.Subscription{}.Skips(t.Context(), es.Header{{Key: "compensate.function", Value: "b"}}), "it is the id that counts, as in Wow")
	}
	require.Equal(t, es.Header{
		{Key: "compensate.id", Value: "1"}, {Key: "compensate.context", Value: "shop"},
		{Key: "compensate.processor", Value: "Mails"}, {Key: "compensate.function", Value: "a"},
	}, func() (h es.Header) { h.Compensate("1", named("a")); return h }())
}

func TestAFunctionThatIsGoneIsNotTakenForDone(t *testing.T) {
	t.Parallel()
	bus, got := &oneBus{tries: 3, failed: []es.FunctionFailure{{Function: named("renamed")}, {Function: named("c")}}}, calls{}
	bus.header.Compensate("1", named("renamed"))
	err := got.functions(nil).Subscribe(t.Context(), bus, es.Subscription{Group: "g"})
	require.True(t, es.IsPermanent(err))
	require.ErrorIs(t, err, es.ErrNotFound)
	require.EqualError(t, err, "function shop.Mails.renamed: not found: function shop.Mails.renamed")
	require.Equal(t, calls{"c": 1}, got)
	ctx := es.WithDelivery(t.Context(), es.Delivery{Failed: bus.failed})
	require.False(t, bus.sub.Skips(ctx, bus.header), "it was this group's own dead letter")
}

func TestFunctionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	good := calls{}.functions(nil)
	for name, fs := range map[string]es.Functions{
		"none":      nil,
		"no name":   {{Function: named(" "), Handle: good[0].Handle}},
		"no handle": {{Function: named("a")}},
		"twice":     {good[0], {Function: named("a"), Handle: good[1].Handle}},
	} {
		bus := &oneBus{tries: 1}
		require.ErrorIs(t, fs.Subscribe(t.Context(), bus, es.Subscription{Group: "g"}), es.ErrInvalid, name)
		require.Empty(t, bus.sub)
	}
}
