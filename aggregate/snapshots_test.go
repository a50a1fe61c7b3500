package aggregate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/snapshot"
)

var everyThird = snapshot.EveryVersions(3)

// faulty is a snapshot store in memory that fails where it is told to.
type faulty struct {
	*memory.SnapshotStore[counter]
	loadErr, saveErr error
}

func newFaulty() *faulty { return &faulty{SnapshotStore: memory.NewSnapshotStore[counter]()} }

func (f *faulty) Load(ctx context.Context, id es.AggregateID) (es.Snapshot[counter], error) {
	if f.loadErr != nil {
		return es.Snapshot[counter]{}, f.loadErr
	}
	return f.SnapshotStore.Load(ctx, id)
}

func (f *faulty) Save(ctx context.Context, s es.Snapshot[counter]) error {
	if f.saveErr != nil {
		return f.saveErr
	}
	return f.SnapshotStore.Save(ctx, s)
}

// versionOf is that of the stored snapshot.
func versionOf(t *testing.T, s es.SnapshotStore[counter], id es.AggregateID) int {
	t.Helper()
	v, err := s.Version(t.Context(), id)
	require.NoError(t, err)
	return v
}

// requireSaid says which warnings were given, in which order.
func requireSaid(t *testing.T, j *journal, want ...string) {
	t.Helper()
	got := j.lines()
	require.Len(t, got, len(want), "%s", strings.Join(got, "\n"))
	for i := range want {
		require.Contains(t, got[i], "level=WARN")
		require.Contains(t, got[i], want[i])
		require.Contains(t, got[i], "at.counter_")
	}
}

func TestSnapshotsAreSavedEvery50VersionsByDefault(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	r.Snapshots = memory.NewSnapshotStore[counter]()
	id := r.Decider.Type.ID("c-1")
	for _, step := range []struct{ version, saved int }{{49, 0}, {50, 50}, {99, 50}, {100, 100}} {
		grow(t, r, id, step.version-int(store.appends.Load()))
		require.Equal(t, step.saved, versionOf(t, r.Snapshots, id), "at version %d", step.version)
	}
	s, err := r.Snapshots.Load(t.Context(), id)
	require.NoError(t, err)
	last, err := store.Last(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, last.ID, s.EventID)
	require.False(t, s.SnapshotTime.Before(last.CreateTime))
}

func TestSNAP05_ReloadEqualsTheLiveStateAtEachStep(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	r.Snapshots, r.Strategy = memory.NewSnapshotStore[counter](), everyThird
	id := r.Decider.Type.ID("c-1")
	for n := 1; n <= 10; n++ {
		c := es.NewCommand(id, add{n})
		c.AllowCreate = true
		handle(t, r, c)
		require.Equal(t, n/3*3, versionOf(t, r.Snapshots, id))
		shortened, err := (&repository{Decider: r.Decider, Store: store, Snapshots: r.Snapshots}).Load(t.Context(), id)
		require.NoError(t, err)
		replayed, err := (&repository{Decider: r.Decider, Store: store}).Load(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, replayed.State, shortened.State)
		require.Equal(t, n*(n+1)/2, shortened.State.Value)
		shortened.SnapshotTime = replayed.SnapshotTime
		require.Equal(t, replayed.Meta, shortened.Meta)
	}
}

func TestLoadAfterASnapshotCostsWhatFollowsAndOneMore(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	r.Snapshots = memory.NewSnapshotStore[counter]()
	id := r.Decider.Type.ID("c-1")
	for _, version := range []int{60, 110, 260, 510} {
		grow(t, r, id, version-int(store.appends.Load()))
		store.loaded.Store(0)
		requireAt(t, r, id, version, version)
		require.EqualValues(t, 11, store.loaded.Load(), "at version %d", version)
	}
}

func TestSNAP03_TroubleOnTheWayToASnapshotIsNoReasonToReplay(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	snapshots := newFaulty()
	r.Snapshots, r.Strategy, r.Attempts = snapshots, everyThird, 3
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 5)
	store.loads.Store(0)
	for _, kind := range []error{es.ErrUnavailable, es.ErrUncertain, es.ErrWrongFormat} {
		snapshots.loadErr = kind
		got, err := r.Load(t.Context(), id)
		require.ErrorIs(t, err, kind)
		require.Zero(t, got)
		_, err = r.Handle(t.Context(), es.NewCommand(id, add{1}))
		require.ErrorIs(t, err, kind)
		require.NotErrorIs(t, err, es.ErrRefused)
	}
	require.Zero(t, store.loads.Load())
	require.EqualValues(t, 5, store.appends.Load())
}

func TestSnapshotThatCannotBeSavedFailsNoCommandAndIsReportedOnce(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	snapshots := newFaulty()
	var log *journal
	r.Logger, log = newJournal()
	r.Snapshots, r.Strategy = snapshots, everyThird
	id, other := r.Decider.Type.ID("c-1"), r.Decider.Type.ID("c-2")
	snapshots.saveErr = es.ErrOutOfMemory
	grow(t, r, id, 8)
	requireSaid(t, log, `msg="snapshot was not saved"`)
	require.Contains(t, log.lines()[0], "version=3")
	require.Contains(t, log.lines()[0], "out of memory")
	grow(t, r, other, 5)
	requireSaid(t, log, "/c-1@", "/c-2@")

	snapshots.saveErr = nil
	grow(t, r, id, 1)
	require.Equal(t, 9, versionOf(t, snapshots, id))
	snapshots.saveErr = es.ErrOutOfMemory
	grow(t, r, id, 4)
	requireSaid(t, log, "/c-1@", "/c-2@", "version=12")
	requireAt(t, r, id, 13, 13)
}

func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	snapshots := newFaulty()
	var log *journal
	r.Logger, log = newJournal()
	r.Snapshots, r.Strategy, snapshots.saveErr = snapshots, snapshot.EveryCommit(), es.ErrOutOfMemory
	const many = 1500
	for range 2 {
		for n := range many {
			grow(t, r, r.Decider.Type.ID(strings.Repeat("x", n%1000)+string(rune('a'+n/1000))), 1)
		}
	}
	require.Len(t, log.lines(), 2*many, "what was said of so many is forgotten")
}

func TestSNAP09_PastVersionsAreExact(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	r.Snapshots, r.Strategy = memory.NewSnapshotStore[counter](), snapshot.EveryVersions(10)
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 10)
	require.Equal(t, 10, versionOf(t, r.Snapshots, id))
	for version := 1; version <= 10; version++ {
		got, err := r.LoadVersion(t.Context(), id, version)
		require.NoError(t, err)
		require.Equal(t, version, got.Version)
		require.Equal(t, version, got.State.Value)
	}
	for version, kind := range map[int]error{11: es.ErrNotFound, 0: es.ErrInvalid, -1: es.ErrInvalid} {
		got, err := r.LoadVersion(t.Context(), id, version)
		require.ErrorIs(t, err, kind)
		require.Zero(t, got)
		var at *es.Error
		require.ErrorAs(t, err, &at)
		require.Equal(t, version, at.Version)
	}
}
