package estest

import (
	crand "crypto/rand"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// snapshotStore is short for what the suite tests.
type snapshotStore = es.SnapshotStore[State]

// TestSnapshotStore tests what [es.SnapshotStore] promises; newStore is as for
// [TestEventStore].
func TestSnapshotStore[S es.SnapshotStore[State]](t *testing.T, newStore func(t *testing.T, types ...es.Types) S) {
	open := func(t *testing.T, types ...es.Types) snapshotStore { return newStore(t, types...) }
	runChecks(t, open, []check[snapshotStore]{
		{"what is saved is loaded", snapshotSaved},
		{"an unknown aggregate has none", snapshotUnknown},
		{"a newer one replaces", snapshotNewer},
		{"version 0 may be saved", snapshotZero},
		{"SNAP-01 an older one is a silent success", snapshotOlder},
		{"SNAP-01 of many at once the newest stays", snapshotShuffled},
		{"an equal version replaces", snapshotEqual},
		{"KEY-05 aggregates are worlds of their own", snapshotIsolated},
		{"KEY-04 odd ids", snapshotOddIDs},
		{"JSON-01 JSON-02 states come back exactly", snapshotExact},
		{"what is stored is a copy", snapshotCopies},
		{"SNAP-02 an unreadable one is reported and replaced", snapshotUnreadable},
		{"SNAP-04 a loaded one can be replaced by an older one", snapshotAhead},
		{"replacing needs the very bytes", snapshotReplace},
		{"SNAP-02 of many who replace one succeeds", snapshotReplaceRace},
		{"what cannot be saved", snapshotFaults},
		{"a closed context", snapshotContext},
	})
}

// snapshotOf is a snapshot with every field set.
func snapshotOf(id es.AggregateID, version int, data string) es.Snapshot[State] {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	return es.Snapshot[State]{
		Meta: es.Meta{
			Aggregate: id, OwnerID: "owner-1", SpaceID: "space-1", Version: version, EventID: "commit-1",
			FirstOperator: "ada", Operator: "grace", FirstEventTime: at, EventTime: at.Add(time.Hour),
			SnapshotTime: at.Add(2 * time.Hour), Tags: es.Tags{"team": {"a", "b"}}, Deleted: true,
		},
		State: State{Data: data, Number: int64(version), Items: []string{"i"}, Labels: map[string]string{"k": "v"}, Ratio: 0.5, Seal: "whole"},
	}
}

func save(t *testing.T, s snapshotStore, snapshots ...es.Snapshot[State]) {
	t.Helper()
	for _, snapshot := range snapshots {
		require.NoError(t, s.Save(t.Context(), snapshot))
	}
}

// requireSnapshot says what is stored; the mark of the state's shape is the store's own.
func requireSnapshot(t *testing.T, s snapshotStore, want es.Snapshot[State]) {
	t.Helper()
	got, err := s.Load(t.Context(), want.Aggregate)
	require.NoError(t, err)
	got.Schema, want.Schema = "", ""
	got.Stored = nil
	require.Equal(t, want, got)
	version, err := s.Version(t.Context(), want.Aggregate)
	require.NoError(t, err)
	require.Equal(t, want.Version, version)
}

func requireNoSnapshot(t *testing.T, s snapshotStore, id es.AggregateID) {
	t.Helper()
	_, err := s.Load(t.Context(), id)
	requireAt(t, err, es.ErrNotFound, es.Error{Aggregate: id})
	version, err := s.Version(t.Context(), id)
	require.NoError(t, err)
	require.Zero(t, version)
}

func snapshotSaved(t *testing.T, k kit[snapshotStore]) {
	want := snapshotOf(k.typ.ID("a-1"), 1, "created and changed")
	save(t, k.store, want)
	requireSnapshot(t, k.store, want)
	fine := want
	fine.Version, fine.EventTime = 2, want.EventTime.Add(999*time.Microsecond).In(time.FixedZone("somewhere", 5400))
	save(t, k.store, fine)
	want.Version = 2
	requireSnapshot(t, k.store, want)
}

func snapshotUnknown(t *testing.T, k kit[snapshotStore]) {
	requireNoSnapshot(t, k.store, k.typ.ID("a-1"))
}

func snapshotNewer(t *testing.T, k kit[snapshotStore]) {
	id := k.typ.ID("a-1")
	for _, version := range []int{1, 2, 9, 10, 11, 100, es.MaxVersion} {
		next := snapshotOf(id, version, "next")
		save(t, k.store, next)
		requireSnapshot(t, k.store, next)
	}
}

func snapshotZero(t *testing.T, k kit[snapshotStore]) {
	zero := es.Snapshot[State]{Meta: es.Meta{Aggregate: k.typ.ID("a-1")}}
	save(t, k.store, zero)
	got, err := k.store.Load(t.Context(), zero.Aggregate)
	require.NoError(t, err)
	require.Equal(t, zero.Aggregate, got.Aggregate)
	require.Zero(t, got.Version)
	require.Equal(t, zero.State, got.State)
	one := snapshotOf(zero.Aggregate, 1, "one")
	save(t, k.store, one)
	requireSnapshot(t, k.store, one)
}

func snapshotOlder(t *testing.T, k kit[snapshotStore]) {
	id := k.typ.ID("a-1")
	newest := snapshotOf(id, 10, "newest")
	save(t, k.store, snapshotOf(id, 2, "first"), newest)
	for _, version := range []int{9, 7, 2, 1, 0} {
		save(t, k.store, snapshotOf(id, version, "late"))
		requireSnapshot(t, k.store, newest)
	}
}

func snapshotShuffled(t *testing.T, k kit[snapshotStore]) {
	for range 20 {
		id := k.typ.ID(crand.Text())
		order := rand.Perm(12)
		require.Equal(t, 12, together(t, 12, nil, func(i int) error {
			return k.store.Save(t.Context(), snapshotOf(id, 1+order[i], "shuffled"))
		}))
		requireSnapshot(t, k.store, snapshotOf(id, 12, "shuffled"))
	}
}

func snapshotEqual(t *testing.T, k kit[snapshotStore]) {
	first := snapshotOf(k.typ.ID("a-1"), 3, "first")
	second := snapshotOf(first.Aggregate, 3, "replacement")
	first.SnapshotTime, second.SnapshotTime = time.UnixMilli(1).UTC(), time.UnixMilli(2).UTC()
	save(t, k.store, first, second)
	requireSnapshot(t, k.store, second)
}

func snapshotIsolated(t *testing.T, k kit[snapshotStore]) {
	other := es.AggregateType{Context: "estest2", Name: k.typ.Name}
	s := k.open(k.typ, other)
	mine := snapshotOf(k.typ.ID("1").InTenant("t1"), 5, "mine")
	strangers := []es.AggregateID{mine.Aggregate.InTenant("t2"), k.typ.ID("11").InTenant("t1"), other.ID("1").InTenant("t1")}
	save(t, s, mine)
	for i, id := range strangers {
		requireNoSnapshot(t, s, id)
		save(t, s, snapshotOf(id, 1+i, "theirs"))
	}
	requireSnapshot(t, s, mine)
	for i, id := range strangers {
		requireSnapshot(t, s, snapshotOf(id, 1+i, "theirs"))
	}
}

func snapshotOddIDs(t *testing.T, k kit[snapshotStore]) {
	var ids []es.AggregateID
	for _, odd := range oddIDs() {
		ids = append(ids, k.typ.ID(odd), k.typ.ID("of "+nameOf(odd)).InTenant(odd))
	}
	ids = append(ids, k.typ.ID("of nobody").InTenant(""), k.typ.ID("a@ac").InTenant("t"), k.typ.ID("a").InTenant("ac@t"))
	for i, id := range ids {
		save(t, k.store, snapshotOf(id, 1+i, id.ID), snapshotOf(id, i, "late"))
	}
	for i, id := range ids {
		requireSnapshot(t, k.store, snapshotOf(id, 1+i, id.ID))
	}
}

func snapshotExact(t *testing.T, k kit[snapshotStore]) {
	version := 0
	roundTrip := func(state State) {
		t.Helper()
		version++
		s := snapshotOf(k.typ.ID("a-1"), version, "")
		s.State = state
		save(t, k.store, s)
		requireSnapshot(t, k.store, s)
	}
	roundTrip(State{})
	roundTrip(State{Items: []string{}, Labels: map[string]string{}})
	roundTrip(State{Items: []string{""}, Labels: map[string]string{"": ""}})
	for _, n := range []int64{math.MinInt64, math.MaxInt64, 1<<53 + 1, -(1<<53 + 1), 123456789012345678} {
		roundTrip(State{Number: n, Ratio: 1 / float64(n)})
	}
	for _, text := range []string{"<b>&amp;</b>", "\u2028", "\x00", "😀", `"version":99,`, `{"version":1}`, `\`, strings.Repeat("x", 1<<20)} {
		roundTrip(State{Data: text, Items: []string{text}, Labels: map[string]string{text: text}})
	}
}

func snapshotCopies(t *testing.T, k kit[snapshotStore]) {
	mine, want := snapshotOf(k.typ.ID("a-1"), 1, "x"), snapshotOf(k.typ.ID("a-1"), 1, "x")
	save(t, k.store, mine)
	mine.Tags["team"][0], mine.State.Items[0], mine.State.Labels["k"] = "changed after", "changed after", "changed after"
	requireSnapshot(t, k.store, want)
	loaded, err := k.store.Load(t.Context(), want.Aggregate)
	require.NoError(t, err)
	loaded.Tags["team"][0], loaded.State.Items[0], loaded.State.Labels["k"] = "changed after", "changed after", "changed after"
	requireSnapshot(t, k.store, want)
}
