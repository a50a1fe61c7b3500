package estest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// The answers of an append, and their order.
var answerChecks = []check[es.EventStore]{
	{"a second first commit conflicts", answerFirst},
	{"a version that is taken or skipped conflicts", answerConflict},
	{"STO-02 the very same commits again are a success", answerSame},
	{"STO-02 nearly the same is not the same", answerNearlySame},
	{"STO-03 a known request is refused at every version", answerRequest},
	{"KEY-05 an id belongs to one tenant", answerTenant},
}

func answerFirst(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	first, second := commitOf(id, 1), commitOf(id, 1)
	store(t, k.store, first)
	requireRefused(t, k.store, es.ErrVersionConflict, second)
	requireStored(t, k.store, id, first)
	_, err := k.store.FindRequest(t.Context(), id, second.RequestID)
	require.ErrorIs(t, err, es.ErrNotFound)
}

func answerConflict(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	requireRefused(t, k.store, es.ErrVersionConflict, commitOf(id, 2))
	requireRefused(t, k.store, es.ErrVersionConflict, commitOf(id, es.MaxVersion))
	requireStored(t, k.store, id)
	commits := commitsOf(id, 1, 3)
	store(t, k.store, commits...)
	var refused []es.Commit
	for _, version := range []int{1, 2, 3, 5, 6, 1000, es.MaxVersion} {
		c := commitOf(id, version)
		requireRefused(t, k.store, es.ErrVersionConflict, c)
		refused = append(refused, c)
	}
	requireStored(t, k.store, id, commits...)
	for _, c := range refused {
		_, err := k.store.FindRequest(t.Context(), id, c.RequestID)
		require.ErrorIs(t, err, es.ErrNotFound, "the conflict at %d left its request id", c.Version)
	}
	store(t, k.store, edited(refused[0], func(c *es.Commit) { c.Version = 4 }))
}

func answerSame(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	one, batch := commitOf(id, 1), commitsOf(id, 2, 3)
	store(t, k.store, one)
	again := func(commits ...es.Commit) {
		t.Helper()
		done, err := k.store.Append(t.Context(), es.AppendOptions{}, commits...)
		require.NoError(t, err)
		require.Equal(t, es.Appended{Same: true}, done)
	}
	again(one)
	_, err := k.store.Append(t.Context(), es.AppendOptions{}, batch...)
	require.NoError(t, err)
	again(batch...)
	again(one)
	again(batch[1])
	again(append([]es.Commit{one}, batch...)...)
	requireStored(t, k.store, id, append([]es.Commit{one}, batch...)...)
}

func answerNearlySame(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	c := commitOf(id, 1)
	store(t, k.store, c)
	for name, change := range map[string]func(*es.Commit){
		"another id":      func(c *es.Commit) { c.ID += "x" },
		"another command": func(c *es.Commit) { c.CommandID += "x" },
		"another owner":   func(c *es.Commit) { c.OwnerID += "x" },
		"another header":  func(c *es.Commit) { c.Header = append(es.Header{{Key: "k", Value: "v"}}, c.Header...) },
		"another body":    func(c *es.Commit) { c.Events[0].Body = Changed{Data: "x"} },
		"another event":   func(c *es.Commit) { c.Events = append(c.Events, c.Events[0]) },
		"another time":    func(c *es.Commit) { c.CreateTime = c.CreateTime.Add(1e6) },
	} {
		t.Log(name)
		requireRefused(t, k.store, es.ErrDuplicateRequest, edited(c, change))
	}
	requireStored(t, k.store, id, c)
}

func answerRequest(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	commits := commitsOf(id, 1, 3)
	store(t, k.store, commits...)
	for version := 1; version <= 6; version++ {
		c := commitOf(id, version)
		c.RequestID = commits[0].RequestID
		requireRefused(t, k.store, es.ErrDuplicateRequest, c)
	}
	requireStored(t, k.store, id, commits...)
	found, err := k.store.FindRequest(t.Context(), id, commits[0].RequestID)
	require.NoError(t, err)
	require.Equal(t, 1, found.Version, "the version that the request produced")
	store(t, k.store, commitOf(id, 4))
}

func answerTenant(t *testing.T, k kit[es.EventStore]) {
	mine, theirs := k.typ.ID("1").InTenant("t1"), k.typ.ID("1").InTenant("t2")
	commits := commitsOf(mine, 1, 2)
	store(t, k.store, commits...)
	c := commitOf(theirs, 1)
	c.RequestID = commits[0].RequestID
	requireRefused(t, k.store, es.ErrDuplicateAggregate, c)
	_, err := k.store.Append(t.Context(), es.AppendOptions{}, commitsOf(theirs, 1, 2)...)
	require.ErrorIs(t, err, es.ErrDuplicateAggregate)
	_, err = k.store.Append(t.Context(), es.AppendOptions{}, commitOf(theirs, 3))
	require.True(t, isAny(err, []error{es.ErrDuplicateAggregate, es.ErrVersionConflict}), "got %v", err)

	requireStored(t, k.store, theirs)
	_, err = k.store.Last(t.Context(), theirs)
	require.ErrorIs(t, err, es.ErrNotFound)
	_, err = k.store.Find(t.Context(), theirs, 1)
	require.ErrorIs(t, err, es.ErrNotFound)
	_, err = k.store.FindRequest(t.Context(), theirs, c.RequestID)
	require.ErrorIs(t, err, es.ErrNotFound)
	requireStored(t, k.store, mine, commits...)
}
