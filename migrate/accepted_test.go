package migrate_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/migrate"
)

// What the operator accepted is left out of the copy. Commits that have no copy are kept.
func TestAcceptedProblemsAreLeftOut(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx, good, bad := t.Context(), s.typ.ID("good"), s.typ.ID("bad")
	for _, id := range []es.AggregateID{good, bad} {
		require.NoError(t, fixture.Write(ctx, s.rdb, legacy.A, id, 3))
	}
	k := fixture.KeysOf(legacy.A, bad)
	require.NoError(t, s.rdb.ZRemRangeByScore(ctx, k.Events, "1", "1").Err())
	require.NoError(t, s.rdb.SRem(ctx, k.Requests, fixture.RequestID(bad, 1)).Err())
	snap(legacy.A, "nobody", "nobody", 1)(t, s, bad)
	require.NoError(t, fixture.Reserve(ctx, s.rdb, "alice", `"u"`, forever))
	a, f := s.audit(), file(t)
	a.Accept = []migrate.Code{migrate.Gap, migrate.OrphanSnapshot, migrate.PrepareWithoutName}
	report, err := a.Run(ctx, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	r := s.copy(t, f)
	require.Equal(t, []int64{1, 3, 2, 0, 4}, []int64{r.Aggregates, r.Events, r.Snapshots, r.Prepared, r.Left})
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	r = s.finish(t, f)
	require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
	require.Equal(t, int64(2), s.rdb.Exists(ctx, k.Events, k.Requests).Val())
	require.Zero(t, s.rdb.Exists(ctx, rediskey.Stream(bad), "prepare:{alice}", fixture.KeysOf(legacy.A, good).Events).Val())
}

// A manifest with problems is not copied, and says why not.
func TestBlockedManifestIsNotCopied(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	require.NoError(t, fixture.Write(t.Context(), s.rdb, legacy.C, s.typ.ID("o"), 2))
	request(legacy.C, "lost")(t, s, s.typ.ID("o"))
	f := file(t)
	report, err := s.audit().Run(t.Context(), s.rdb, f)
	require.NoError(t, err)
	r := s.copy(t, f)
	require.Equal(t, migrate.Blocked, r.Outcome())
	require.Equal(t, report.Problems, r.Problems)
	require.Zero(t, s.rdb.Exists(t.Context(), rediskey.Stream(s.typ.ID("o"))).Val())
}

// A store that went through an upgrade from era B to C: neither set is whole alone.
func TestUpgradedStoreHasBothSets(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx, id, young := t.Context(), s.typ.ID("old"), s.typ.ID("young")
	commit := func(era legacy.Eras, id es.AggregateID, v int) {
		require.NoError(t, fixture.Put(ctx, s.rdb, era, id, []redis.Z{{Score: float64(v), Member: fixture.Commit(era, id, v, "{}")}}, []any{fixture.RequestID(id, v)}))
	}
	commit(legacy.B, id, 1)
	commit(legacy.C, id, 2)
	commit(legacy.C, young, 1)
	f := file(t)
	report, err := s.audit().Run(ctx, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome())
	require.Empty(t, report.Problems.Problems)
	var eras []string
	for _, l := range report.Inventory {
		eras = append(eras, fmt.Sprint(l.Era, " ", l.Kind, " ", l.Members))
	}
	require.Equal(t, []string{"B requests 1", "BC events 2", "C events 1", "C shared requests 2"}, eras)
	s.copy(t, f)
	require.ElementsMatch(t, []string{fixture.RequestID(id, 1), fixture.RequestID(id, 2)}, s.rdb.SMembers(ctx, rediskey.Requests(id)).Val())

	require.NoError(t, s.rdb.SAdd(ctx, fixture.KeysOf(legacy.C, id).Requests, "lost").Err())
	require.NoError(t, s.rdb.SRem(ctx, fixture.KeysOf(legacy.C, id).Requests, fixture.RequestID(young, 1)).Err())
	report, err = s.audit().Run(ctx, s.rdb, nil)
	require.NoError(t, err)
	require.Equal(t, map[migrate.Code]int{migrate.RequestWithoutEvent: 1, migrate.EventWithoutRequest: 1, migrate.CanonicalPresent: 1}, report.ByCode)
}

// Era A may have written the context's name where later ones wrote its alias.
func TestTypesSayWhichAliasEraAMeant(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	then := es.AggregateType{Context: s.typ.Context, Name: s.typ.Name}
	require.NoError(t, fixture.Write(t.Context(), s.rdb, legacy.A, then.ID("o@1"), 2))
	f := file(t)
	report, err := s.audit().Run(t.Context(), s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	require.Equal(t, []es.AggregateType{s.typ}, report.Types)
	s.copy(t, f)
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	require.Equal(t, int64(2), s.rdb.ZCard(t.Context(), rediskey.Stream(s.typ.ID("o@1"))).Val())
}
