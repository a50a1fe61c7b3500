package estest

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var appendChecks = []check[es.EventStore]{
	{"a commit of ten events loads as it was appended", appendTen},
	{"versions follow one another", appendFollows},
	{"many commits in one call", appendMany},
	{"several commits are stored all or none", appendAllOrNone},
	{"request ids belong to one aggregate", appendRequestsPerAggregate},
	{"a thousandth aggregate is as good as the first", appendFresh},
	{"what is stored is a copy", appendCopies},
	{"times are kept in milliseconds", appendTimes},
	{"what may be empty may be empty", appendEmpty},
}

func appendTen(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	bodies := []es.EventBody{Created{Data: "x"}}
	for i := range 9 {
		bodies = append(bodies, Changed{Number: int64(i), Items: []string{}, Labels: map[string]string{}})
	}
	c := commitOf(id, 1, bodies...)
	store(t, k.store, c)
	requireStored(t, k.store, id, c)
	events := stored(t, k.store, id)[0].Events
	require.Len(t, events, 10)
	for i, e := range events {
		require.Equal(t, i+1, e.Sequence)
		require.Equal(t, i == 9, e.Last)
		require.Equal(t, id, e.Aggregate)
		require.Equal(t, 1, e.Version)
	}
}

func appendFollows(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	commits := commitsOf(id, 1, 5)
	store(t, k.store, commits...)
	requireStored(t, k.store, id, commits...)
	last, err := k.store.Last(t.Context(), id)
	require.NoError(t, err)
	requireSame(t, commits[4], last)
}

func appendMany(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	commits := commitsOf(id, 1, 300)
	for _, cut := range [][]es.Commit{commits[:1], commits[1:3], commits[3:]} {
		done, err := k.store.Append(t.Context(), es.AppendOptions{}, cut...)
		require.NoError(t, err)
		require.Equal(t, es.Appended{}, done)
	}
	requireStored(t, k.store, id, commits...)
}

func appendAllOrNone(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	first := commitsOf(id, 1, 2)
	store(t, k.store, first...)
	next := commitsOf(id, 3, 3)

	known := append([]es.Commit(nil), next...)
	known[2].RequestID = first[0].RequestID
	_, err := k.store.Append(t.Context(), es.AppendOptions{}, known...)
	require.ErrorIs(t, err, es.ErrDuplicateRequest, "the third of them is a known request")
	requireStored(t, k.store, id, first...)

	_, err = k.store.Append(t.Context(), es.AppendOptions{}, commitsOf(id, 2, 3)...)
	require.ErrorIs(t, err, es.ErrVersionConflict)
	_, err = k.store.Append(t.Context(), es.AppendOptions{}, append(first[1:2:2], next[0])...)
	require.ErrorIs(t, err, es.ErrDuplicateRequest, "one is stored and one is new")
	requireStored(t, k.store, id, first...)

	_, err = k.store.Append(t.Context(), es.AppendOptions{}, next...)
	require.NoError(t, err, "no refusal used up a request id")
	requireStored(t, k.store, id, append(first, next...)...)
}

func appendRequestsPerAggregate(t *testing.T, k kit[es.EventStore]) {
	a, b := commitOf(k.typ.ID("a"), 1), commitOf(k.typ.ID("b"), 1)
	b.RequestID = a.RequestID
	store(t, k.store, a)
	_, err := k.store.FindRequest(t.Context(), b.Aggregate, a.RequestID)
	require.ErrorIs(t, err, es.ErrNotFound, "the request is known of the other aggregate only")
	store(t, k.store, b)
	for _, c := range []es.Commit{a, b} {
		found, err := k.store.FindRequest(t.Context(), c.Aggregate, c.RequestID)
		require.NoError(t, err)
		requireSame(t, c, found)
	}
}

func appendFresh(t *testing.T, k kit[es.EventStore]) {
	const n = 200
	commits := make([]es.Commit, n)
	for i := range commits {
		commits[i] = commitOf(k.typ.ID(rand.Text()), 1)
	}
	require.Equal(t, n, together(t, n, nil, func(i int) error {
		_, err := k.store.Append(t.Context(), es.AppendOptions{}, commits[i])
		return err
	}))
	for _, c := range commits {
		requireStored(t, k.store, c.Aggregate, c)
	}
}

func appendCopies(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	want := commitOf(id, 1, Created{Data: "x"})
	mine := edited(want, func(*es.Commit) {})
	store(t, k.store, mine)
	mine.Header[0].Value, mine.Events[0].Body = "changed after", Created{Data: "changed after"}
	requireStored(t, k.store, id, want)

	loaded := stored(t, k.store, id)[0]
	loaded.Header[0].Value, loaded.Events[0].Body = "changed after", Created{Data: "changed after"}
	requireStored(t, k.store, id, want)
}

func appendTimes(t *testing.T, k kit[es.EventStore]) {
	c := commitOf(k.typ.ID("a-1"), 1)
	mine := c
	mine.CreateTime = c.CreateTime.Add(999 * time.Microsecond).In(time.FixedZone("somewhere", 5400))
	store(t, k.store, mine)
	requireStored(t, k.store, c.Aggregate, c)
	again, err := k.store.Append(t.Context(), es.AppendOptions{}, mine)
	require.NoError(t, err)
	require.True(t, again.Same)
}

func appendEmpty(t *testing.T, k kit[es.EventStore]) {
	c := commitOf(k.typ.ID("a-1").InTenant(""), 1)
	c.OwnerID, c.SpaceID, c.Header = "", "", nil
	c.Derive()
	store(t, k.store, c)
	got := stored(t, k.store, c.Aggregate)
	require.Len(t, got, 1)
	require.Empty(t, got[0].Header)
	got[0].Header = nil
	requireSame(t, c, got[0])
}
