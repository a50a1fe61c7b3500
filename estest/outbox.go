package estest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// OutboxStore is what [TestOutbox] needs: notes come from appending.
type OutboxStore interface {
	es.EventStore
	es.Outbox
}

// TestOutbox tests what [es.Outbox] and [es.AppendOptions].Note promise; newStore is as
// for [TestEventStore].
func TestOutbox[S OutboxStore](t *testing.T, newStore func(t *testing.T, types ...es.Types) S) {
	open := func(t *testing.T, types ...es.Types) OutboxStore { return newStore(t, types...) }
	runChecks(t, open, []check[OutboxStore]{
		{"without a note there is nothing to publish", noteNone},
		{"LOST-09 a note stands until its commits are published", noteLife},
		{"a note of several commits stands at the first", noteBatch},
		{"several are published at once", noteThrough},
		{"a note elsewhere is left as it is", noteElsewhere},
		{"many notes are moved at once", noteMany},
		{"STO-02 the same again is answered by the note", noteSame},
		{"a refused append leaves no note", noteRefused},
		{"an append without a note leaves a standing one", noteMixed},
		{"LOST-09 all notes are listed, each once", noteList},
		{"types are worlds of their own", noteTypes},
		{"what cannot be noted", noteFaults},
		{"publishers that follow the notes publish all in order", notePublishers},
	})
}

var withNote = es.AppendOptions{Note: true}

func requireNotes(t *testing.T, k kit[OutboxStore], want ...es.Note) {
	t.Helper()
	require.ElementsMatch(t, want, collect(t, k.store.Unpublished(t.Context(), k.typ)))
}

// requireNoted appends with a note, and says whether it is the caller who publishes.
func requireNoted(t *testing.T, s es.Appender, publish bool, commits ...es.Commit) {
	t.Helper()
	done, err := s.Append(t.Context(), withNote, commits...)
	require.NoError(t, err)
	require.Equal(t, es.Appended{Publish: publish}, done)
}

// requireMoved says where the note stands after the versions were published.
func requireMoved(t *testing.T, s es.Outbox, id es.AggregateID, from, through, next int) {
	t.Helper()
	got, err := s.Published(t.Context(), id, from, through)
	require.NoError(t, err)
	require.Equal(t, next, got, "where the note stands after %d to %d", from, through)
}

func noteNone(t *testing.T, k kit[OutboxStore]) {
	id := k.typ.ID("a-1")
	store(t, k.store, commitsOf(id, 1, 2)...)
	requireNotes(t, k)
	requireMoved(t, k.store, id, 1, 2, 0)
	requireMoved(t, k.store, k.typ.ID("unknown"), 1, 1, 0)
	requireNotes(t, k)
}

func noteLife(t *testing.T, k kit[OutboxStore]) {
	id := k.typ.ID("a-1")
	requireNoted(t, k.store, true, commitOf(id, 1))
	requireNotes(t, k, es.Note{Aggregate: id, Version: 1})
	requireNoted(t, k.store, false, commitOf(id, 2))
	requireNotes(t, k, es.Note{Aggregate: id, Version: 1})
	requireMoved(t, k.store, id, 1, 1, 2)
	requireNotes(t, k, es.Note{Aggregate: id, Version: 2})
	requireNoted(t, k.store, false, commitOf(id, 3))
	requireMoved(t, k.store, id, 2, 2, 3)
	requireMoved(t, k.store, id, 3, 3, 0)
	requireNotes(t, k)
	requireNoted(t, k.store, true, commitOf(id, 4))
	requireNotes(t, k, es.Note{Aggregate: id, Version: 4})
}

func noteBatch(t *testing.T, k kit[OutboxStore]) {
	id := k.typ.ID("a-1")
	requireNoted(t, k.store, true, commitsOf(id, 1, 3)...)
	requireNotes(t, k, es.Note{Aggregate: id, Version: 1})
	requireNoted(t, k.store, false, commitsOf(id, 4, 2)...)
	requireMoved(t, k.store, id, 1, 3, 4)
	requireMoved(t, k.store, id, 4, 5, 0)
	requireNotes(t, k)
}

func noteThrough(t *testing.T, k kit[OutboxStore]) {
	id := k.typ.ID("a-1")
	for version := 1; version <= 12; version++ {
		requireNoted(t, k.store, version == 1, commitOf(id, version))
	}
	requireMoved(t, k.store, id, 1, 9, 10)
	requireMoved(t, k.store, id, 10, 11, 12)
	requireMoved(t, k.store, id, 12, 40, 0)
	requireNotes(t, k)
}

func noteElsewhere(t *testing.T, k kit[OutboxStore]) {
	id, other := k.typ.ID("a-1"), k.typ.ID("a-2")
	requireNoted(t, k.store, true, commitOf(other, 1))
	requireNoted(t, k.store, true, commitsOf(id, 1, 5)...)
	requireMoved(t, k.store, id, 1, 2, 3)
	for _, from := range []int{1, 2, 4, 5, 6} {
		requireMoved(t, k.store, id, from, from, 3)
		requireMoved(t, k.store, id, from, 9, 3)
	}
	requireMoved(t, k.store, id.InTenant("t2"), 3, 3, 0)
	requireNotes(t, k, es.Note{Aggregate: id, Version: 3}, es.Note{Aggregate: other, Version: 1})
	requireMoved(t, k.store, id, 3, 5, 0)
	requireMoved(t, k.store, id, 3, 5, 0)
	requireNotes(t, k, es.Note{Aggregate: other, Version: 1})
}

func noteSame(t *testing.T, k kit[OutboxStore]) {
	id := k.typ.ID("a-1")
	first, second := commitOf(id, 1), commitOf(id, 2)
	again := func(c es.Commit, publish bool) {
		t.Helper()
		done, err := k.store.Append(t.Context(), withNote, c)
		require.NoError(t, err)
		require.Equal(t, es.Appended{Same: true, Publish: publish}, done, "version %d", c.Version)
	}
	requireNoted(t, k.store, true, first)
	again(first, true)
	requireNoted(t, k.store, false, second)
	again(first, true)
	again(second, false)
	requireMoved(t, k.store, id, 1, 1, 2)
	again(first, false)
	again(second, true)
	done, err := k.store.Append(t.Context(), es.AppendOptions{}, second)
	require.NoError(t, err)
	require.Equal(t, es.Appended{Same: true}, done, "without a note nobody is told to publish")
	requireMoved(t, k.store, id, 2, 2, 0)
	again(first, false)
	again(second, false)
	requireNotes(t, k)
}

func noteRefused(t *testing.T, k kit[OutboxStore]) {
	id := k.typ.ID("a-1")
	first := commitOf(id, 1)
	known := edited(first, func(c *es.Commit) { c.Version = 2 })
	refuse := func(kind error, c es.Commit) {
		t.Helper()
		done, err := k.store.Append(t.Context(), withNote, c)
		require.ErrorIs(t, err, kind)
		require.Equal(t, es.Appended{}, done)
	}
	refuse(es.ErrVersionConflict, commitOf(id, 2))
	requireNotes(t, k)
	store(t, k.store, first)
	refuse(es.ErrVersionConflict, commitOf(id, 1))
	refuse(es.ErrVersionConflict, commitOf(id, 3))
	refuse(es.ErrDuplicateRequest, known)
	refuse(es.ErrDuplicateAggregate, commitOf(id.InTenant("t2"), 1))
	refuse(es.ErrInvalid, commitOf(id, 0))
	requireNotes(t, k)
	requireNoted(t, k.store, true, commitOf(id, 2))
	refuse(es.ErrVersionConflict, commitOf(id, 2))
	requireNotes(t, k, es.Note{Aggregate: id, Version: 2})
}

func noteMixed(t *testing.T, k kit[OutboxStore]) {
	id := k.typ.ID("a-1")
	requireNoted(t, k.store, true, commitOf(id, 1))
	store(t, k.store, commitOf(id, 2))
	requireNotes(t, k, es.Note{Aggregate: id, Version: 1})
	requireMoved(t, k.store, id, 1, 1, 2)
	requireMoved(t, k.store, id, 2, 2, 0)
	store(t, k.store, commitOf(id, 3))
	requireNotes(t, k)
}

func noteList(t *testing.T, k kit[OutboxStore]) {
	var want []es.Note
	var ids []es.AggregateID
	for _, odd := range oddIDs() {
		ids = append(ids, k.typ.ID(odd), k.typ.ID("of "+nameOf(odd)).InTenant(odd))
	}
	for i := range 300 {
		ids = append(ids, k.typ.ID(fmt.Sprintf("a-%d", i)))
	}
	for i, id := range ids {
		version := 1 + i%3
		if version > 1 {
			store(t, k.store, commitsOf(id, 1, version-1)...)
		}
		requireNoted(t, k.store, true, commitOf(id, version))
		want = append(want, es.Note{Aggregate: id, Version: version})
	}
	requireNotes(t, k, want...)
	n := 0
	for _, err := range k.store.Unpublished(t.Context(), k.typ) {
		require.NoError(t, err)
		if n++; n == 10 {
			break
		}
	}
	require.Equal(t, 10, n)
	for _, note := range want {
		requireMoved(t, k.store, note.Aggregate, note.Version, note.Version, 0)
	}
	requireNotes(t, k)
}

func noteTypes(t *testing.T, k kit[OutboxStore]) {
	other := es.AggregateType{Context: "estest2", Name: k.typ.Name}
	s := k.open(k.typ, other)
	requireNoted(t, s, true, commitOf(k.typ.ID("a-1"), 1))
	require.Empty(t, collect(t, s.Unpublished(t.Context(), other)))
	requireMoved(t, s, other.ID("a-1"), 1, 1, 0)
	require.Len(t, collect(t, s.Unpublished(t.Context(), k.typ)), 1)
}

func noteFaults(t *testing.T, k kit[OutboxStore]) {
	id := k.typ.ID("a-1")
	requireNoted(t, k.store, true, commitsOf(id, 1, 3)...)
	for _, r := range [][2]int{{0, 0}, {-1, 1}, {0, 5}, {1, 0}, {3, 2}} {
		_, err := k.store.Published(t.Context(), id, r[0], r[1])
		require.ErrorIs(t, err, es.ErrInvalid, "from %d through %d", r[0], r[1])
	}
	for what, bad := range badTexts() {
		_, err := k.store.Published(t.Context(), k.typ.ID(bad), 1, 1)
		require.ErrorIs(t, err, es.ErrInvalid, what)
	}
	_, err := k.store.Published(closed(t), id, 1, 1)
	require.ErrorIs(t, err, context.Canceled)
	var at *es.Error
	require.ErrorAs(t, err, &at)
	require.Equal(t, id, at.Aggregate)
	_, err = k.store.Append(closed(t), withNote, commitOf(k.typ.ID("a-2"), 1))
	require.ErrorIs(t, err, context.Canceled)
	requireEnds(t, k.store.Unpublished(closed(t), k.typ), context.Canceled)
	requireEnds(t, k.store.Unpublished(t.Context(), es.AggregateType{Context: "estest"}), es.ErrInvalid)
	requireNotes(t, k, es.Note{Aggregate: id, Version: 1})
}
