package estest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var refusalChecks = []busCheck{
	{"a message is not sent where the context is closed", busClosed},
	{"a message to what is no aggregate is refused", busNoAggregate},
	{"a subscription that cannot be is refused", busNoSubscription},
}

func busClosed(t *testing.T, k busKit) {
	sent := k.letters("a-1", 2)
	err := k.send(closed(t), sent[0])
	require.ErrorIs(t, err, context.Canceled)
	var at *es.Error
	require.ErrorAs(t, err, &at)
	require.Equal(t, sent[0].aggregate, at.Aggregate)
	k.sendAll(t, sent[1])
	require.Equal(t, sent[1:], lettersOf(k.read(t, k.subscription(), nil).wait(t, 1)))
}

func busNoAggregate(t *testing.T, k busKit) {
	brace, nameless := k.typ, k.typ
	brace.Name, nameless.Name = "a{b}", " "
	bad := map[string]es.AggregateID{"a brace": brace.ID("a-1"), "no name": nameless.ID("a-1")}
	for what, text := range badTexts() {
		bad["id "+what] = k.typ.ID(text)
		if text != "" {
			bad["tenant "+what] = k.typ.ID("a-1").InTenant(text)
		}
	}
	for what, id := range bad {
		err := k.send(t.Context(), letter{"m-1", id, 1})
		require.ErrorIs(t, err, es.ErrInvalid, what)
		var at *es.Error
		require.ErrorAs(t, err, &at, what)
		require.Equal(t, id, at.Aggregate, what)
	}
	fence := k.letters("a-1", 1)
	k.sendAll(t, fence...)
	require.Equal(t, fence, lettersOf(k.read(t, k.subscription(), nil).wait(t, 1)), "nothing of it was sent")
}

func busNoSubscription(t *testing.T, k busKit) {
	blank, empty, none, brace, nameless, twice := k.subscription(), k.subscription(), k.subscription(), k.subscription(), k.subscription(), k.subscription()
	blank.Group, empty.Group, none.Aggregates = " \t", "", nil
	brace.Aggregates = []es.AggregateType{{Context: "estest", Name: "a{b}"}}
	nameless.Aggregates = []es.AggregateType{k.typ, {}}
	twice.Aggregates = []es.AggregateType{k.typ, k.typ}
	for what, s := range map[string]es.Subscription{
		"a blank group": blank, "no group": empty, "no types": none, "a type with a brace": brace, "no type": nameless, "a type twice": twice,
	} {
		for _, err := range []error{k.prepare(t.Context(), s), k.subscribe(t.Context(), s, nil)} {
			t.Log(what, err)
			requireAt(t, err, es.ErrInvalid, es.Error{})
		}
	}
}
