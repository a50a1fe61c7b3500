package estest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// spoil saves a snapshot that cannot be read and returns its bytes.
func spoil(t *testing.T, s snapshotStore, id es.AggregateID, version int) []byte {
	t.Helper()
	broken := snapshotOf(id, version, "broken")
	broken.State.Seal = Broken
	save(t, s, broken)
	_, err := s.Load(t.Context(), id)
	requireAt(t, err, es.ErrCorrupt, es.Error{Aggregate: id})
	var unreadable *es.UnreadableSnapshot
	require.ErrorAs(t, err, &unreadable)
	require.NotEmpty(t, unreadable.Raw)
	return unreadable.Raw
}

func snapshotUnreadable(t *testing.T, k kit[snapshotStore]) {
	id := k.typ.ID("a-1")
	raw := spoil(t, k.store, id, 5)
	good := snapshotOf(id, 3, "replayed")
	done, err := k.store.Replace(t.Context(), raw, good)
	require.NoError(t, err)
	require.True(t, done)
	requireSnapshot(t, k.store, good)
	done, err = k.store.Replace(t.Context(), raw, snapshotOf(id, 4, "late"))
	require.NoError(t, err)
	require.False(t, done, "the bad bytes are gone")
	requireSnapshot(t, k.store, good)
}

func snapshotAhead(t *testing.T, k kit[snapshotStore]) {
	ahead, truth := snapshotOf(k.typ.ID("a-1"), 5, "ahead"), snapshotOf(k.typ.ID("a-1"), 2, "replayed")
	save(t, k.store, ahead)
	loaded, err := k.store.Load(t.Context(), ahead.Aggregate)
	require.NoError(t, err)
	save(t, k.store, loaded)
	requireSnapshot(t, k.store, ahead)
	loaded, err = k.store.Load(t.Context(), ahead.Aggregate)
	require.NoError(t, err)
	require.NotEmpty(t, loaded.Stored)
	done, err := k.store.Replace(t.Context(), loaded.Stored, truth)
	require.NoError(t, err)
	require.True(t, done)
	requireSnapshot(t, k.store, truth)
}

func snapshotReplace(t *testing.T, k kit[snapshotStore]) {
	id := k.typ.ID("a-1")
	for _, old := range [][]byte{nil, {}, []byte("{")} {
		done, err := k.store.Replace(t.Context(), old, snapshotOf(id, 1, "x"))
		require.NoError(t, err)
		require.False(t, done, "nothing is stored")
	}
	requireNoSnapshot(t, k.store, id)
	raw := spoil(t, k.store, id, 5)
	for _, old := range [][]byte{nil, {}, raw[:len(raw)-1], append(slices.Clip(raw), ' ')} {
		done, err := k.store.Replace(t.Context(), old, snapshotOf(id, 9, "x"))
		require.NoError(t, err)
		require.False(t, done, "other bytes are stored")
	}
	_, err := k.store.Load(t.Context(), id)
	require.ErrorIs(t, err, es.ErrCorrupt)
}

func snapshotReplaceRace(t *testing.T, k kit[snapshotStore]) {
	raw := spoil(t, k.store, k.typ.ID("a-1"), 5)
	lost := es.Invalid("another one was first")
	require.Equal(t, 1, together(t, 20, []error{lost}, func(i int) error {
		done, err := k.store.Replace(t.Context(), raw, snapshotOf(k.typ.ID("a-1"), 1+i, "replayed"))
		if err == nil && !done {
			err = lost
		}
		return err
	}))
}

func snapshotFaults(t *testing.T, k kit[snapshotStore]) {
	id := k.typ.ID("a-1")
	bad := map[string]es.Snapshot[State]{"no version": snapshotOf(id, -1, "x"), "too far": snapshotOf(id, es.MaxVersion+1, "x")}
	for what, text := range badTexts() {
		bad["id "+what] = snapshotOf(k.typ.ID(text), 1, "x")
		if text != "" {
			bad["tenant "+what] = snapshotOf(id.InTenant(text), 1, "x")
		}
	}
	nan, text, brace := snapshotOf(id, 1, "x"), snapshotOf(id, 1, "a\xffb"), k.typ
	nan.State.Ratio = math.NaN()
	brace.Name = "{x}"
	bad["NaN"], bad["invalid UTF-8"], bad["a brace"] = nan, text, snapshotOf(brace.ID("a-1"), 1, "x")
	for what, s := range bad {
		t.Log(what)
		requireAt(t, k.store.Save(t.Context(), s), es.ErrInvalid, es.Error{Aggregate: s.Aggregate, Version: s.Version})
		done, err := k.store.Replace(t.Context(), []byte("{"), s)
		requireAt(t, err, es.ErrInvalid, es.Error{Aggregate: s.Aggregate, Version: s.Version})
		require.False(t, done)
	}
	requireNoSnapshot(t, k.store, id)
	for _, unreadable := range []es.AggregateID{k.typ.ID(""), k.typ.ID("\xff"), id.InTenant("\xff"), brace.ID("a-1")} {
		_, err := k.store.Load(t.Context(), unreadable)
		requireAt(t, err, es.ErrInvalid, es.Error{Aggregate: unreadable})
		_, err = k.store.Version(t.Context(), unreadable)
		requireAt(t, err, es.ErrInvalid, es.Error{Aggregate: unreadable})
	}
}

func snapshotContext(t *testing.T, k kit[snapshotStore]) {
	s := snapshotOf(k.typ.ID("a-1"), 1, "x")
	requireAt(t, k.store.Save(closed(t), s), context.Canceled, es.Error{Aggregate: s.Aggregate, Version: 1})
	requireNoSnapshot(t, k.store, s.Aggregate)
	save(t, k.store, s)
	_, err := k.store.Load(closed(t), s.Aggregate)
	requireAt(t, err, context.Canceled, es.Error{Aggregate: s.Aggregate})
	_, err = k.store.Version(closed(t), s.Aggregate)
	requireAt(t, err, context.Canceled, es.Error{Aggregate: s.Aggregate})
	_, err = k.store.Replace(closed(t), []byte("{"), s)
	requireAt(t, err, context.Canceled, es.Error{Aggregate: s.Aggregate, Version: 1})
	requireSnapshot(t, k.store, s)
}
