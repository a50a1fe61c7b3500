package estest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var loadChecks = []check[es.EventStore]{
	{"an unknown aggregate has no commits", loadUnknown},
	{"a range of versions is inclusive", loadRange},
	{"ranges that cannot be", loadBadRange},
	{"JSON-10 the order is numeric", loadOrder},
	{"STO-13 long streams load whole", loadLong},
	{"a loop may stop early, and run again", loadStops},
	{"readers do not disturb one another", loadConcurrent},
	{"single commits are found", findOne},
	{"what is not there is not found", findNothing},
}

func loadUnknown(t *testing.T, k kit[es.EventStore]) {
	store(t, k.store, commitOf(k.typ.ID("a-1"), 1))
	for _, id := range []string{"a-2", "a-", "a-1 ", "a-11"} {
		requireStored(t, k.store, k.typ.ID(id))
		require.Empty(t, collect(t, k.store.Load(t.Context(), k.typ.ID(id), es.Versions{From: 3, To: 5})))
	}
}

func loadRange(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	commits := commitsOf(id, 1, 12)
	store(t, k.store, commits...)
	for _, c := range []struct {
		r        es.Versions
		from, to int
	}{
		{es.Versions{}, 1, 12},
		{es.Versions{From: 1}, 1, 12},
		{es.Versions{From: 1, To: 1}, 1, 1},
		{es.Versions{To: 1}, 1, 1},
		{es.Versions{From: 2, To: 11}, 2, 11},
		{es.Versions{From: 9, To: 10}, 9, 10},
		{es.Versions{From: 12}, 12, 12},
		{es.Versions{From: 12, To: 12}, 12, 12},
		{es.Versions{From: 10, To: 500}, 10, 12},
		{es.Versions{From: 10, To: es.MaxVersion}, 10, 12},
		{es.Versions{From: 13}, 13, 12},
		{es.Versions{From: 13, To: 20}, 13, 12},
	} {
		got := collect(t, k.store.Load(t.Context(), id, c.r))
		require.Equal(t, versionsOf(commits[c.from-1:c.to]), versionsOf(got), "range %+v", c.r)
	}
}

func loadBadRange(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	store(t, k.store, commitsOf(id, 1, 3)...)
	for _, r := range []es.Versions{{From: -1}, {To: -1}, {From: 3, To: 2}, {From: 5, To: 4}, {From: -2, To: -1}} {
		requireEnds(t, k.store.Load(t.Context(), id, r), es.ErrInvalid)
	}
}

func loadOrder(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	commits := commitsOf(id, 1, 101)
	_, err := k.store.Append(t.Context(), es.AppendOptions{}, commits...)
	require.NoError(t, err)
	for _, r := range []es.Versions{{To: 12}, {From: 99, To: 101}, {}} {
		versions := versionsOf(collect(t, k.store.Load(t.Context(), id, r)))
		require.True(t, slices.IsSorted(versions), "%v", versions)
		require.NotEmpty(t, versions)
	}
}

func loadLong(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	commits := commitsOf(id, 1, 1200)
	for part := range slices.Chunk(commits, 400) {
		_, err := k.store.Append(t.Context(), es.AppendOptions{}, part...)
		require.NoError(t, err)
	}
	requireStored(t, k.store, id, commits...)
	for _, version := range []int{1, 2, 599, 1199, 1200} {
		c := commits[version-1]
		found, err := k.store.FindRequest(t.Context(), id, c.RequestID)
		require.NoError(t, err)
		requireSame(t, c, found)
	}
}

func loadStops(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	commits := commitsOf(id, 1, 5)
	store(t, k.store, commits...)
	seq := k.store.Load(t.Context(), id, es.Versions{})
	for want := range 6 {
		seen := 0
		for _, err := range seq {
			require.NoError(t, err)
			if seen++; seen > want {
				break
			}
		}
		require.Equal(t, min(want+1, 5), seen)
	}
}

func loadConcurrent(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	c := commitOf(id, 1)
	store(t, k.store, c)
	require.Equal(t, 200, together(t, 200, nil, func(int) error {
		n := 0
		for got, err := range k.store.Load(t.Context(), id, es.Versions{}) {
			if err != nil {
				return err
			}
			if n++; n > 1 || got.ID != c.ID {
				return es.Invalid("loaded %d commits, and %s", n, got.ID)
			}
		}
		return nil
	}))
}

func findOne(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	commits := commitsOf(id, 1, 12)
	for i, c := range commits {
		store(t, k.store, c)
		last, err := k.store.Last(t.Context(), id)
		require.NoError(t, err)
		requireSame(t, commits[i], last)
	}
	for _, c := range commits {
		found, err := k.store.Find(t.Context(), id, c.Version)
		require.NoError(t, err)
		requireSame(t, c, found)
		found, err = k.store.FindRequest(t.Context(), id, c.RequestID)
		require.NoError(t, err)
		requireSame(t, c, found)
	}
}

func findNothing(t *testing.T, k kit[es.EventStore]) {
	id, other := k.typ.ID("a-1"), k.typ.ID("a-2")
	store(t, k.store, commitsOf(id, 1, 2)...)
	_, err := k.store.Last(t.Context(), other)
	requireAt(t, err, es.ErrNotFound, es.Error{Aggregate: other})
	for _, version := range []int{3, 100, es.MaxVersion} {
		_, err = k.store.Find(t.Context(), id, version)
		requireAt(t, err, es.ErrNotFound, es.Error{Aggregate: id, Version: version})
	}
	for _, version := range []int{0, -1} {
		_, err = k.store.Find(t.Context(), id, version)
		requireAt(t, err, es.ErrInvalid, es.Error{Aggregate: id, Version: version})
	}
	_, err = k.store.Find(t.Context(), other, 1)
	requireAt(t, err, es.ErrNotFound, es.Error{Aggregate: other, Version: 1})
	for _, a := range []es.AggregateID{id, other} {
		_, err = k.store.FindRequest(t.Context(), a, "never seen")
		requireAt(t, err, es.ErrNotFound, es.Error{Aggregate: a, RequestID: "never seen"})
	}
}
