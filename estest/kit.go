package estest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// kit is what each test of a suite gets: a store, and an aggregate type of its own.
type kit[S any] struct {
	store S
	typ   es.AggregateType
	// open makes a store for other types.
	open func(types ...es.AggregateType) S
}

// check is one test of a suite.
type check[S any] struct {
	name string
	run  func(t *testing.T, k kit[S])
}

func runChecks[S any](t *testing.T, newStore func(t *testing.T, types ...es.Types) S, checks []check[S]) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			open := func(types ...es.AggregateType) S {
				tables := make([]es.Types, len(types))
				for i := range types {
					tables[i] = TypesOf(types[i])
				}
				return newStore(t, tables...)
			}
			typ := newType()
			c.run(t, kit[S]{store: open(typ), typ: typ, open: open})
		})
	}
}

// commitOf is a commit with ids of its own, as it will be loaded.
func commitOf(id es.AggregateID, version int, bodies ...es.EventBody) es.Commit {
	if len(bodies) == 0 {
		bodies = []es.EventBody{Changed{Data: "the same every time", Items: []string{"a"}, Labels: map[string]string{"k": "v"}}}
	}
	c := es.Commit{
		ID: rand.Text(), Aggregate: id, CommandID: rand.Text(), RequestID: rand.Text(), Version: version,
		Header:     es.Header{{Key: es.HeaderTraceID, Value: rand.Text()}, {Key: es.HeaderOperator, Value: "ada"}},
		OwnerID:    "owner-1",
		SpaceID:    "space-1",
		CreateTime: time.Now().Truncate(time.Millisecond).UTC(),
	}
	for _, body := range bodies {
		e := es.NewEvent(rand.Text(), body)
		e.BodyType = bodyType(body)
		c.Events = append(c.Events, e)
	}
	c.Derive()
	return c
}

// edited is a copy of c that was changed, and shares nothing with it that can be.
func edited(c es.Commit, change func(*es.Commit)) es.Commit {
	c.Header = append(es.Header(nil), c.Header...)
	c.Events = append([]es.Event(nil), c.Events...)
	change(&c)
	c.Derive()
	return c
}

// commitsOf is n commits with consecutive versions.
func commitsOf(id es.AggregateID, from, n int) []es.Commit {
	commits := make([]es.Commit, n)
	for i := range commits {
		commits[i] = commitOf(id, from+i)
	}
	return commits
}

// store appends the commits, each by a call of its own.
func store(t *testing.T, s es.Appender, commits ...es.Commit) {
	t.Helper()
	for _, c := range commits {
		done, err := s.Append(t.Context(), es.AppendOptions{}, c)
		require.NoError(t, err)
		require.Equal(t, es.Appended{}, done, "the first append of a commit, without a note")
	}
}

// stored is all commits of the aggregate.
func stored(t *testing.T, s es.Loader, id es.AggregateID) []es.Commit {
	t.Helper()
	return collect(t, s.Load(t.Context(), id, es.Versions{}))
}

func collect[T any](t *testing.T, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var items []T
	for item, err := range seq {
		require.NoError(t, err)
		items = append(items, item)
	}
	return items
}

// requireStored says that exactly these commits are stored.
func requireStored(t *testing.T, s es.Loader, id es.AggregateID, want ...es.Commit) {
	t.Helper()
	got := stored(t, s, id)
	require.Equal(t, versionsOf(want), versionsOf(got), "versions stored of %s", id)
	for i := range want {
		requireSame(t, want[i], got[i])
	}
}

// requireSame compares all that is written and derived.
func requireSame(t *testing.T, want, got es.Commit) {
	t.Helper()
	require.True(t, want.CreateTime.Equal(got.CreateTime), "create time %s, want %s", got.CreateTime, want.CreateTime)
	require.Equal(t, want, got)
}

func versionsOf(commits []es.Commit) []int {
	versions := []int{}
	for _, c := range commits {
		versions = append(versions, c.Version)
	}
	return versions
}

// requireAt says that err is a kind, placed by an [es.Error] that fits on one line.
func requireAt(t *testing.T, err error, kind error, where es.Error) {
	t.Helper()
	require.ErrorIs(t, err, kind)
	var at *es.Error
	require.ErrorAs(t, err, &at, "every error is an *es.Error")
	require.NotEmpty(t, at.Op, "it names the operation")
	require.Equal(t, where.Aggregate, at.Aggregate, "it names the aggregate")
	require.Equal(t, where.Version, at.Version, "it names the version")
	require.Equal(t, where.RequestID, at.RequestID, "it names the request")
	require.False(t, strings.ContainsAny(err.Error(), "\r\n\u2028\u2029"), "it is one line: %q", err)
}

// requireRefused says that an append was answered with kind.
func requireRefused(t *testing.T, s es.Appender, kind error, c es.Commit) {
	t.Helper()
	done, err := s.Append(t.Context(), es.AppendOptions{}, c)
	requireAt(t, err, kind, es.Error{Aggregate: c.Aggregate, Version: c.Version, RequestID: c.RequestID})
	require.Equal(t, es.Appended{}, done)
}

// requireEnds says that a sequence yields one error of a kind, and nothing else.
func requireEnds[T any](t *testing.T, seq iter.Seq2[T, error], kind error) {
	t.Helper()
	var errs []error
	for _, err := range seq {
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], kind)
	var at *es.Error
	require.ErrorAs(t, errs[0], &at, "every error is an *es.Error")
}

// together calls f n times at once and counts the outcomes: nil, or one of kinds.
func together(t *testing.T, n int, kinds []error, f func(i int) error) (succeeded int) {
	t.Helper()
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	for i, err := range errs {
		if err == nil {
			succeeded++
			continue
		}
		require.True(t, isAny(err, kinds), "call %d: %v is none of %v", i, err, kinds)
	}
	return succeeded
}

func isAny(err error, kinds []error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// closed is a context that has ended.
func closed(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// oddIDs are valid ids that have been trouble somewhere: in keys, indexes, patterns,
// logs or tools that stop at a NUL.
func oddIDs() []string {
	ids := []string{
		" ", "  two", "\n", "a\nb", "\t", "a\x00", "a\x00b", "\x00", "@", "a@b", ":", "a:b:c", "{", "}", "{}", "}{", "a}b", "{a}",
		"a{b{c}d}", "order@{42}:雪", "x:req_idx", "x:ids", ":outbox", "..", "/", "a/b", "*", "?", "[ab]", "\\", `"`, "'", "%00", "~", "~~",
		"!", "#", "(0)", "0", "-1", "null", "é", "e\u0301", "中", "😀", "\U0010FFFF", "\uFFFD", "\ue000", "\u2028", "\ufeff", "A", "a", "aa",
	}
	return append(ids, strings.Repeat("x", es.MaxIDBytes), strings.Repeat("é", es.MaxIDBytes/2), strings.Repeat("😀", es.MaxIDBytes/4))
}

// badTexts are what no id can be, by what is wrong with them.
func badTexts() map[string]string {
	return map[string]string{
		"empty":         "",
		"invalid UTF-8": "a\xff\xfe",
		"a surrogate":   "\xed\xa0\x80",
		"over-long":     strings.Repeat("x", es.MaxIDBytes+1),
	}
}

func nameOf(text string) string {
	if len(text) > 20 {
		return fmt.Sprintf("%q and so on, %d bytes", text[:8], len(text))
	}
	return fmt.Sprintf("%q", text)
}
