package aggregate_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/snapshot"
)

// plant saves a snapshot that no event leads to.
func plant(t *testing.T, s es.SnapshotStore[counter], id es.AggregateID, version int) {
	t.Helper()
	require.NoError(t, s.Save(t.Context(), es.Snapshot[counter]{
		Meta:  es.Meta{Aggregate: id, Version: version, EventID: "of another history", OwnerID: "nobody", Deleted: true},
		State: counter{Value: 1000},
	}))
}

func TestSNAP04_SnapshotAheadOfItsEventsIsReportedAndReplaced(t *testing.T) {
	t.Parallel()
	for how, strategy := range snapshotting {
		r, _ := newRepository()
		var log *journal
		r.Logger, log = newJournal()
		r.Snapshots, r.Strategy = memory.NewSnapshotStore[counter](), strategy
		id := r.Decider.Type.ID("c-1")
		grow(t, r, id, 1)
		plant(t, r.Snapshots, id, 2)

		for range 3 {
			requireAt(t, r, id, 1, 1)
		}
		requireSaid(t, log, "no event leads to the snapshot")
		require.Equal(t, 2, versionOf(t, r.Snapshots, id), "a load writes nothing")
		require.Equal(t, 2, handle(t, r, es.NewCommand(id, add{5})).Version, how)
		s, err := r.Snapshots.Load(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, 2, s.Version)
		require.Equal(t, 6, s.State.Value, how)
		require.Empty(t, s.OwnerID)
		grow(t, r, id, 3)
		requireAt(t, r, id, 5, 9)
		requireSaid(t, log, "no event leads to the snapshot")
	}
}

func TestSnapshotOfAnotherHistoryIsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, 4, 5, 6, 100} { // below, at and beyond the newest commit
		r, _ := newRepository()
		var log *journal
		r.Logger, log = newJournal()
		r.Snapshots = memory.NewSnapshotStore[counter]()
		id := r.Decider.Type.ID("c-1")
		grow(t, r, id, 5)
		plant(t, r.Snapshots, id, version)
		requireAt(t, r, id, 5, 5)
		grow(t, r, id, 1)
		require.Equal(t, 6, versionOf(t, r.Snapshots, id))
		requireAt(t, r, id, 6, 6)
		requireSaid(t, log, "no event leads to the snapshot")
	}
}

func TestSnapshotWithoutEventsIsNoAggregate(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	r.Logger, _ = newJournal()
	r.Snapshots = memory.NewSnapshotStore[counter]()
	id := r.Decider.Type.ID("c-1")
	plant(t, r.Snapshots, id, 7)
	_, err := r.Load(t.Context(), id)
	require.ErrorIs(t, err, es.ErrNotFound)
	_, err = r.Handle(t.Context(), es.NewCommand(id, add{1}))
	require.ErrorIs(t, err, es.ErrNotFound)
	grow(t, r, id, 1)
	requireAt(t, r, id, 1, 1)
	require.Equal(t, 1, versionOf(t, r.Snapshots, id))
}

func TestSnapshotThatNamesNoCommitIsBelieved(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	r.Snapshots = memory.NewSnapshotStore[counter]()
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 5)
	require.NoError(t, r.Snapshots.Save(t.Context(), es.Snapshot[counter]{Meta: es.Meta{Aggregate: id, Version: 4}, State: counter{Value: 40}}))
	requireAt(t, r, id, 5, 41)
}

func TestSTO12_NewLifeUnderAnOldIDOwesNothingToTheFirst(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		id := s.typ.ID("c-1")
		cached := s.repository()
		cached.Logger, _ = newJournal()
		first := es.NewCreateCommand(id, add{1})
		first.ID = "first"
		handle(t, cached, first)
		grow(t, cached, id, 11)
		old, err := s.rdb.Get(t.Context(), rediskey.Snapshot(id)).Result()
		require.NoError(t, err)
		require.NoError(t, s.store.Purge(t.Context(), id, 12, eventstore.PurgeOptions{}))
		_, err = cached.Load(t.Context(), id)
		require.ErrorIs(t, err, es.ErrNotFound)

		require.Equal(t, es.Result{Aggregate: id, Version: 1}, handle(t, cached, first), "its request ids are free too")
		require.NoError(t, s.rdb.Set(t.Context(), rediskey.Snapshot(id), old, 0).Err())
		for version := 2; version <= 14; version++ { // past the old snapshot's version 12
			fresh := s.repository()
			fresh.Logger = cached.Logger
			requireAt(t, fresh, id, version-1, version-1)
			requireAt(t, cached, id, version-1, version-1)
			require.Equal(t, version, handle(t, []*repository{fresh, cached}[version%2], es.NewCommand(id, add{1})).Version)
		}

		require.NoError(t, s.store.Purge(t.Context(), id, 14, eventstore.PurgeOptions{Tombstone: true}))
		_, err = cached.Handle(t.Context(), first)
		require.ErrorIs(t, err, es.ErrDuplicateAggregate)
		require.ErrorIs(t, err, es.ErrRefused)
		_, err = cached.Handle(t.Context(), es.NewCommand(id, add{1}))
		require.ErrorIs(t, err, es.ErrNotFound)
	})
}

func TestFAIL02_LostTailIsRecreatedOnceByTheRedeliveredCommand(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		id := s.typ.ID("c-1")
		r := s.repository()
		var log *journal
		r.Logger, log = newJournal()
		r.Strategy = snapshot.EveryCommit()
		grow(t, r, id, 4)
		c := es.NewCommand(id, add{10})
		c.ID = "lost"
		require.Equal(t, 5, handle(t, r, c).Version)

		keys := rediskey.EventKeys(id) // what a failover to a replica behind leaves
		_, err := s.rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.ZRemRangeByScore(t.Context(), keys.Stream, "5", "5")
			p.SRem(t.Context(), keys.Requests, "lost")
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 5, versionOf(t, s.snapshots, id))

		requireAt(t, r, id, 4, 4)
		require.Equal(t, es.Result{Aggregate: id, Version: 5}, handle(t, r, c))
		require.Equal(t, es.Result{Aggregate: id, Version: 5, Duplicate: true}, handle(t, r, c))
		requireAt(t, r, id, 5, 14)
		requireSaid(t, log, "no event leads to the snapshot")
	})
}
