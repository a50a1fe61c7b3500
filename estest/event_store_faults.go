package estest

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// Bad input: it is refused, nothing is stored, and no request id is used up.
var faultChecks = []check[es.EventStore]{
	{"KEY-03 ids that cannot be", faultIDs},
	{"names that cannot be", faultNames},
	{"STO-08 versions that cannot be", faultVersions},
	{"commits that cannot be", faultCommits},
	{"batches that cannot be", faultBatches},
	{"JSON-08 bodies that cannot be written", faultBodies},
	{"JSON-03 nesting has one limit", faultNesting},
	{"a closed context", faultContext},
}

func faultIDs(t *testing.T, k kit[es.EventStore]) {
	for what, bad := range badTexts() {
		ids := map[string]es.AggregateID{"id": k.typ.ID(bad)}
		if bad != "" {
			ids["tenant"] = k.typ.ID("a-1").InTenant(bad)
		}
		for part, id := range ids {
			t.Log(what, part)
			requireRefused(t, k.store, es.ErrInvalid, commitOf(id, 1))
			requireUnreadable(t, k.store, id)
		}
	}
	requireStored(t, k.store, k.typ.ID("a-1"))
}

// requireUnreadable says that no read takes this id.
func requireUnreadable(t *testing.T, s es.EventStore, id es.AggregateID) {
	t.Helper()
	requireEnds(t, s.Load(t.Context(), id, es.Versions{}), es.ErrInvalid)
	_, err := s.Last(t.Context(), id)
	requireAt(t, err, es.ErrInvalid, es.Error{Aggregate: id})
	_, err = s.Find(t.Context(), id, 1)
	requireAt(t, err, es.ErrInvalid, es.Error{Aggregate: id, Version: 1})
	_, err = s.FindRequest(t.Context(), id, "r")
	requireAt(t, err, es.ErrInvalid, es.Error{Aggregate: id, RequestID: "r"})
}

func faultNames(t *testing.T, k kit[es.EventStore]) {
	for _, bad := range []string{"", " ", "{", "a}b", "{x}", "\xff", strings.Repeat("n", es.MaxIDBytes+1)} {
		types := map[string]es.AggregateType{
			"context": {Context: bad, Name: k.typ.Name},
			"name":    {Context: k.typ.Context, Name: bad},
		}
		if strings.TrimSpace(bad) != "" {
			types["alias"] = es.AggregateType{Context: k.typ.Context, Alias: bad, Name: k.typ.Name}
		}
		for part, typ := range types {
			t.Log(part, nameOf(bad))
			requireRefused(t, k.store, es.ErrInvalid, commitOf(typ.ID("a-1"), 1))
			requireUnreadable(t, k.store, typ.ID("a-1"))
		}
	}
}

func faultVersions(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	c := commitOf(id, 1)
	refuse := func() {
		for _, version := range []int{0, -1, math.MinInt32, math.MinInt64, es.MaxVersion + 1, 1 << 53, math.MaxInt64} {
			requireRefused(t, k.store, es.ErrInvalid, edited(c, func(c *es.Commit) { c.Version = version }))
		}
	}
	refuse()
	requireStored(t, k.store, id)
	store(t, k.store, c)
	refuse()
	requireStored(t, k.store, id, c)
}

func faultCommits(t *testing.T, k kit[es.EventStore]) {
	c := commitOf(k.typ.ID("a-1"), 1)
	bad := map[string]func(*es.Commit){
		"no events":      func(c *es.Commit) { c.Events = nil },
		"an empty slice": func(c *es.Commit) { c.Events = []es.Event{} },
		"no body":        func(c *es.Commit) { c.Events[0].Body = nil },
	}
	for what, text := range badTexts() {
		bad["commit id "+what] = func(c *es.Commit) { c.ID = text }
		bad["command id "+what] = func(c *es.Commit) { c.CommandID = text }
		bad["request id "+what] = func(c *es.Commit) { c.RequestID = text }
		bad["event id "+what] = func(c *es.Commit) { c.Events[0].ID = text }
		bad["event name "+what] = func(c *es.Commit) { c.Events[0].Name = text }
		bad["revision "+what] = func(c *es.Commit) { c.Events[0].Revision = text }
		if text != "" {
			bad["owner "+what] = func(c *es.Commit) { c.OwnerID = text }
			bad["space "+what] = func(c *es.Commit) { c.SpaceID = text }
		}
	}
	for what, change := range bad {
		t.Log(what)
		requireRefused(t, k.store, es.ErrInvalid, edited(c, change))
	}
	requireStored(t, k.store, c.Aggregate)
	store(t, k.store, c)
}

func faultBatches(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	_, err := k.store.Append(t.Context(), es.AppendOptions{})
	require.ErrorIs(t, err, es.ErrInvalid, "no commits")
	sameID, sameRequest, foreign := commitsOf(id, 1, 2), commitsOf(id, 1, 2), commitsOf(id, 1, 2)
	sameID[1].ID = sameID[0].ID
	sameRequest[1].RequestID = sameRequest[0].RequestID
	foreign[1] = commitOf(k.typ.ID("a-2"), 2)
	for what, batch := range map[string][]es.Commit{
		"a gap":             {commitOf(id, 1), commitOf(id, 3)},
		"backwards":         {commitOf(id, 2), commitOf(id, 1)},
		"one version twice": {commitOf(id, 1), commitOf(id, 1)},
		"one id twice":      sameID,
		"another aggregate": foreign,
		"another tenant":    {commitOf(id, 1), commitOf(id.InTenant("t2"), 2)},
		"a bad second":      {commitOf(id, 1), {Aggregate: id, Version: 2}},
		"a bad body":        {commitOf(id, 1), commitOf(id, 2, Measured{Value: math.NaN()})},
	} {
		_, err := k.store.Append(t.Context(), es.AppendOptions{}, batch...)
		require.ErrorIs(t, err, es.ErrInvalid, what)
		requireStored(t, k.store, id)
	}
	_, err = k.store.Append(t.Context(), es.AppendOptions{}, sameRequest...)
	require.True(t, isAny(err, []error{es.ErrInvalid, es.ErrDuplicateRequest}), "one request twice: %v", err)
	requireStored(t, k.store, id)
	store(t, k.store, commitOf(id, 1))
}

func faultBodies(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	c := commitOf(id, 1)
	for what, body := range map[string]es.EventBody{
		"NaN":           Measured{Value: math.NaN()},
		"+Inf":          Measured{Value: math.Inf(1)},
		"-Inf":          Measured{Value: math.Inf(-1)},
		"a channel":     Nested{Tree: make(chan int)},
		"a function":    Nested{Tree: func() {}},
		"invalid UTF-8": Created{Data: "a\xffb"},
		"a bad label":   Changed{Labels: map[string]string{"\xff": "v"}},
		"17 MiB":        Created{Data: strings.Repeat("x", 17<<20)},
	} {
		t.Log(what)
		bad := commitOf(id, 1, body)
		bad.RequestID = c.RequestID
		kind := es.ErrInvalid
		if what == "17 MiB" {
			kind = es.ErrTooLarge
		}
		requireRefused(t, k.store, kind, bad)
		requireStored(t, k.store, id)
	}
	store(t, k.store, c)
}

func faultNesting(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	tree := func(levels int) (tree any) {
		tree = "leaf"
		for range levels {
			tree = []any{tree}
		}
		return tree
	}
	_, err := k.store.Append(t.Context(), es.AppendOptions{}, commitOf(id, 1, Nested{Tree: tree(600)}))
	require.True(t, isAny(err, []error{es.ErrTooLarge, es.ErrInvalid}), "600 levels: %v", err)
	requireStored(t, k.store, id)
	c := commitOf(id, 1, Nested{Tree: tree(400)})
	store(t, k.store, c)
	requireStored(t, k.store, id, c)
}

func faultContext(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	c := commitOf(id, 1)
	_, err := k.store.Append(closed(t), es.AppendOptions{}, c)
	requireAt(t, err, context.Canceled, es.Error{Aggregate: id, Version: 1, RequestID: c.RequestID})
	requireStored(t, k.store, id)
	store(t, k.store, c)
	requireEnds(t, k.store.Load(closed(t), id, es.Versions{}), context.Canceled)
	_, err = k.store.Last(closed(t), id)
	requireAt(t, err, context.Canceled, es.Error{Aggregate: id})
	_, err = k.store.Find(closed(t), id, 1)
	requireAt(t, err, context.Canceled, es.Error{Aggregate: id, Version: 1})
	_, err = k.store.FindRequest(closed(t), id, c.RequestID)
	requireAt(t, err, context.Canceled, es.Error{Aggregate: id, RequestID: c.RequestID})
}
