package migrate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/migrate"
	"github.com/headwater-go/headwater/wire"
)

// From each era into the same place: audit, copy, verify, finish, and the new store reads
// every commit, byte for byte.
func TestEveryEraFromAuditToLoad(t *testing.T) {
	t.Parallel()
	for _, era := range fixture.Eras[:4] {
		t.Run(era.String(), func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(t *testing.T, s *scene) { s.journey(t, era) })
		})
	}
}

func (s *scene) journey(t *testing.T, era legacy.Eras) {
	t.Helper()
	ctx, ids := t.Context(), s.write(t, era)
	before := s.members(t, era, ids)
	store := eventstore.New(s.rdb, wire.JSON(es.Types{Aggregate: s.typ}))
	if era >= legacy.C {
		err := store.Ready(ctx, s.typ)
		require.ErrorIs(t, err, es.ErrLegacyLayout)
		require.ErrorContains(t, err, "headwater migrate audit")
	}
	f := file(t)
	report, err := s.audit().Run(ctx, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)

	want := migrate.Result{Manifest: report.Manifest, Aggregates: 17, Events: 48, Requests: 48, Snapshots: 17, Finished: true}
	copied, err := migrate.Copy{Pace: s.pace}.Run(ctx, s.rdb, s.rdb, f)
	require.NoError(t, err)
	want.Keys = 34
	require.Equal(t, want, copied)
	require.Equal(t, migrate.Clean, copied.Outcome())
	again, err := migrate.Copy{Pace: s.pace}.Run(ctx, s.rdb, s.rdb, f)
	require.NoError(t, err)
	want.Keys = 0
	require.Equal(t, want, again, "what is there is counted, and not written again")

	verified, err := migrate.Verify{Pace: s.pace}.Run(ctx, s.rdb, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, want, verified)

	finished, err := migrate.Finish{Pace: s.pace, WritersStopped: true}.Run(ctx, s.rdb, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, finished.Outcome(), "%v", finished.Problems)
	require.Equal(t, report.Legacy(), finished.Keys)

	last, err := s.audit().Run(ctx, s.rdb, nil)
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, last.Outcome(), "%v", last)
	s.loads(t, store, ids, before)
}

// members are the commits of each aggregate, as the server has them.
func (s *scene) members(t *testing.T, era legacy.Eras, ids []es.AggregateID) map[es.AggregateID][]string {
	t.Helper()
	found := map[es.AggregateID][]string{}
	for _, id := range ids {
		found[id] = s.rdb.ZRange(t.Context(), fixture.KeysOf(era, id).Events, 0, -1).Val()
		require.NotEmpty(t, found[id])
	}
	return found
}

// loads reads everything through the new store, and the keys that it does not read.
func (s *scene) loads(t *testing.T, store *eventstore.Store, ids []es.AggregateID, before map[es.AggregateID][]string) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, store.Ready(ctx, s.typ))
	var scanned []es.AggregateID
	for id, err := range store.Scan(ctx, s.typ, "") {
		require.NoError(t, err)
		scanned = append(scanned, id)
	}
	require.ElementsMatch(t, ids, scanned)
	require.Equal(t, before, s.members(t, legacy.E, ids))
	for _, id := range ids {
		version := 0
		for c, err := range store.Load(ctx, id, es.Versions{}) {
			require.NoError(t, err)
			version++
			require.Equal(t, fixture.RequestID(id, version), c.RequestID)
			known, err := store.HasRequest(ctx, id, c.RequestID)
			require.NoError(t, err)
			require.True(t, known)
		}
		require.Equal(t, len(before[id]), version)
		require.Equal(t, int64(version), s.rdb.SCard(ctx, rediskey.Requests(id)).Val())
		require.Contains(t, s.rdb.Get(ctx, rediskey.Snapshot(id)).Val(), `"version":`+strings.TrimSpace(string(rune('0'+version))))
		c := es.Commit{Aggregate: id, ID: "next", CommandID: "next", RequestID: "next", Version: version + 1, Events: []es.Event{{ID: "e", Name: "n", Revision: "1", BodyType: "b", Body: es.Raw(`{}`)}}}
		_, err := store.Append(ctx, es.AppendOptions{}, c)
		require.NoError(t, err, "the store goes on where the old one ended")
	}
}
