package aggregate_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

// requireMended says that an aggregate at version 4 whose snapshot cannot be used is
// as its events say, and that the next command mends the snapshot.
func requireMended(t *testing.T, s site, id es.AggregateID) {
	t.Helper()
	r := s.repository()
	var log *journal
	r.Logger, log = newJournal()
	for range 3 {
		requireAt(t, r, id, 4, 4)
	}
	requireSaid(t, log, "snapshot cannot be used; replaying")
	require.Equal(t, 5, handle(t, r, es.NewCommand(id, add{1})).Version)
	requireSaid(t, log, "snapshot cannot be used; replaying")
	mended, err := s.snapshots.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 5, mended.Version)
	require.Equal(t, 5, mended.State.Value)
	requireAt(t, r, id, 5, 5)
}

func TestSNAP02_UnreadableSnapshotIsReportedReplayedAndMended(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		for what, spoil := range map[string]func(good string) string{
			"garbage":        func(string) string { return "\x00\xfe garbage" },
			"empty":          func(string) string { return "" },
			"a brace":        func(string) string { return "{" },
			"another type":   func(string) string { return `{"name":"x","total":7}` },
			"cut off":        func(good string) string { return good[:len(good)-9] },
			"null":           func(string) string { return "null" },
			"a state cut in": func(good string) string { return good[:len(good)/2] + good[len(good)/2+3:] },
		} {
			id := s.typ.ID(what)
			grow(t, s.repository(), id, 4)
			key := rediskey.Snapshot(id)
			good, err := s.rdb.Get(t.Context(), key).Result()
			require.NoError(t, err)
			require.NoError(t, s.rdb.Set(t.Context(), key, spoil(good), 0).Err())
			requireMended(t, s, id)
		}
	})
}

func TestSNAP07_SnapshotOfAnotherShapeIsReplayed(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		id := s.typ.ID("c-1")
		old := &aggregate.Repository[struct{ Total float64 }]{
			Decider: aggregate.Decider[struct{ Total float64 }]{
				Type:   s.typ,
				Decide: func(struct{ Total float64 }, es.Command) (es.Events, error) { return es.Events{added{1}}, nil },
				Evolve: func(t struct{ Total float64 }, _ es.Event) struct{ Total float64 } { t.Total++; return t },
			},
			Store:     s.store,
			Snapshots: snapshot.New[struct{ Total float64 }](s.rdb, wire.JSON(typesOf(s.typ))), Strategy: snapshot.EveryCommit(),
		}
		for range 4 {
			c := es.NewCommand(id, add{1})
			c.AllowCreate = true
			_, err := old.Handle(t.Context(), c)
			require.NoError(t, err)
		}
		require.Equal(t, 4, versionOf(t, s.snapshots, id))
		requireMended(t, s, id)
	})
}

func TestSNAP08_SnapshotOfAnotherAggregateIsReplayed(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		id, other := s.typ.ID("c-1"), s.typ.ID("c-2").InTenant("t-2")
		grow(t, s.repository(), id, 4)
		grow(t, s.repository(), other, 9)
		foreign, err := s.rdb.Get(t.Context(), rediskey.Snapshot(other)).Result()
		require.NoError(t, err)
		require.NoError(t, s.rdb.Set(t.Context(), rediskey.Snapshot(id), foreign, 0).Err())
		requireMended(t, s, id)
	})
}

func TestSNAP10_KeyOfAnotherTypeCostsReplaysAndIsReportedOnce(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		id := s.typ.ID("c-1")
		r := s.repository()
		var log *journal
		r.Logger, log = newJournal()
		r.Strategy = snapshot.EveryCommit()
		grow(t, r, id, 1)
		key := rediskey.Snapshot(id)
		_, err := s.rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Del(t.Context(), key)
			p.HSet(t.Context(), key, "a", 1)
			return nil
		})
		require.NoError(t, err)
		grow(t, r, id, 5)
		requireAt(t, r, id, 6, 6)
		requireSaid(t, log, "snapshot cannot be used; replaying", "snapshot was not saved")
		require.Equal(t, "1", s.rdb.HGet(t.Context(), key, "a").Val(), "it is somebody's")

		require.NoError(t, s.rdb.Del(t.Context(), key).Err())
		grow(t, r, id, 1)
		require.Equal(t, 7, versionOf(t, s.snapshots, id))
		requireAt(t, r, id, 7, 7)
		require.Len(t, log.lines(), 2)
	})
}
