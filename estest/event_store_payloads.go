package estest

import (
	"crypto/rand"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// What the caller's bodies, headers and ids hold comes back unchanged.
var payloadChecks = []check[es.EventStore]{
	{"JSON-02 integers come back exactly", payloadIntegers},
	{"JSON-13 texts come back exactly", payloadTexts},
	{"JSON-08 floats come back exactly", payloadFloats},
	{"JSON-01 empty lists stay empty lists", payloadEmpty},
	{"STO-05 identical payloads are commits of their own", payloadIdentical},
	{"headers keep their order", payloadHeaders},
	{"a body of a megabyte", payloadLarge},
}

func requireRoundTrip(t *testing.T, k kit[es.EventStore], bodies ...es.EventBody) {
	t.Helper()
	c := commitOf(k.typ.ID("a-1"), 1, bodies...)
	store(t, k.store, c)
	requireStored(t, k.store, c.Aggregate, c)
	again, err := k.store.Append(t.Context(), es.AppendOptions{}, c)
	require.NoError(t, err)
	require.True(t, again.Same, "it is written the same way twice")
}

func payloadIntegers(t *testing.T, k kit[es.EventStore]) {
	var bodies []es.EventBody
	for _, n := range []int64{0, 1, -1, math.MinInt64, math.MaxInt64, 1<<53 - 1, 1 << 53, 1<<53 + 1, -(1<<53 + 1), 123456789012345, 123456789012345678} {
		bodies = append(bodies, Changed{Number: n})
	}
	requireRoundTrip(t, k, bodies...)
}

func payloadTexts(t *testing.T, k kit[es.EventStore]) {
	var bodies []es.EventBody
	texts := append(oddIDs(), "", "<b>&amp;/</b>", `\u0041`, `\ufffd`,
		"a\u0000b", "\u2028\u2029", "\u0085", "\x7f", "\b\f\r\v\x1b", "{\"a\":[]}", "[]")
	for _, text := range texts {
		bodies = append(bodies, Changed{Data: text, Items: []string{text}, Labels: map[string]string{text: text}})
	}
	requireRoundTrip(t, k, bodies...)
}

func payloadFloats(t *testing.T, k kit[es.EventStore]) {
	var bodies []es.EventBody
	for _, f := range []float64{0, 1, -1, 0.1, 1.5, math.Pi, 1e21, 1e-7, 1e22, 123456789.125, math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 53} {
		bodies = append(bodies, Measured{Value: f})
	}
	requireRoundTrip(t, k, bodies...)
}

func payloadEmpty(t *testing.T, k kit[es.EventStore]) {
	requireRoundTrip(t, k,
		Changed{Items: []string{}, Labels: map[string]string{}},
		Changed{Items: nil, Labels: nil},
		Changed{Items: []string{""}, Labels: map[string]string{"": ""}},
		Nested{Tree: []any{[]any{}, []any{[]any{}, map[string]any{}}}},
		Nested{Tree: map[string]any{}},
		Nested{Tree: nil})
}

func payloadIdentical(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	first := commitOf(id, 1)
	commits := []es.Commit{first}
	for version := 2; version <= 5; version++ {
		commits = append(commits, edited(first, func(c *es.Commit) {
			c.ID, c.RequestID, c.Version = rand.Text(), rand.Text(), version
		}))
	}
	store(t, k.store, commits...)
	requireStored(t, k.store, id, commits...)
	store(t, k.store, commitOf(id, 6))
}

func payloadHeaders(t *testing.T, k kit[es.EventStore]) {
	c := commitOf(k.typ.ID("a-1"), 1)
	c.Header = es.Header{
		{Key: "z", Value: "1"}, {Key: "a", Value: ""}, {Key: "", Value: "x"},
		{Key: "m<&>\u2028", Value: "\x00é😀\""}, {Key: "9", Value: "9007199254740993"},
	}
	store(t, k.store, c)
	requireStored(t, k.store, c.Aggregate, c)
}

func payloadLarge(t *testing.T, k kit[es.EventStore]) {
	requireRoundTrip(t, k, Created{Data: strings.Repeat("0123456789abcdef", 1<<16)})
}
