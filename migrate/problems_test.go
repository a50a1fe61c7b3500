package migrate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/migrate"
)

const (
	never   = migrate.Outcome(-1)
	forever = 148204944000000
	past    = 1_700_000_000_000
)

// plant is what is wrong with a store that is otherwise in order.
type plant struct {
	name string
	era  legacy.Eras
	do   func(t *testing.T, s *scene, id es.AggregateID)
	code migrate.Code
	// outcome is the audit's, and accepted that of one which accepts the code.
	outcome, accepted migrate.Outcome
}

// Every problem there is, planted beside one aggregate of three commits.
func TestEveryProblemIsFound(t *testing.T) {
	t.Parallel()
	for _, p := range slicesOf(requestPlants, commitPlants, snapshotPlants, otherPlants) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			id := s.typ.ID("o@1")
			require.NoError(t, fixture.Write(t.Context(), s.rdb, p.era, id, 3))
			p.do(t, s, id)

			report, err := s.audit().Run(t.Context(), s.rdb, file(t))
			require.NoError(t, err)
			require.Equal(t, map[migrate.Code]int{p.code: 1}, report.ByCode, "%+v", report.Problems)
			require.Equal(t, p.outcome, report.Outcome())

			a := s.audit()
			a.Accept = []migrate.Code{p.code}
			f := file(t)
			report, err = a.Run(t.Context(), s.rdb, f)
			if p.accepted == never {
				require.ErrorIs(t, err, es.ErrInvalid)
				return
			}
			require.NoError(t, err)
			require.Equal(t, p.accepted, report.Outcome())
			require.Equal(t, 1, report.ByCode[p.code], "what is accepted is told all the same")

			var b strings.Builder
			require.NoError(t, report.Write(&b))
			require.Contains(t, b.String(), string(p.code)+": 1")
			again, err := migrate.ReadReport(f)
			require.NoError(t, err)
			require.Equal(t, report, again)
		})
	}
}

func slicesOf(all ...[]plant) (joined []plant) {
	for _, some := range all {
		joined = append(joined, some...)
	}
	return joined
}

func add(era legacy.Eras, member string, score float64) func(*testing.T, *scene, es.AggregateID) {
	return func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.ZAdd(t.Context(), fixture.KeysOf(era, id).Events, redis.Z{Score: score, Member: member}).Err())
	}
}

func request(era legacy.Eras, id string) func(*testing.T, *scene, es.AggregateID) {
	return func(t *testing.T, s *scene, of es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.SAdd(t.Context(), fixture.KeysOf(era, of).Requests, id).Err())
	}
}

func forget(era legacy.Eras) func(*testing.T, *scene, es.AggregateID) {
	return func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.SRem(t.Context(), fixture.KeysOf(era, id).Requests, fixture.RequestID(id, 2)).Err())
	}
}

var requestPlants = []plant{
	{"a request id without a commit, A", legacy.A, request(legacy.A, "r"), migrate.RequestWithoutEvent, migrate.Blocked, migrate.Migratable},
	{"a request id without a commit, B", legacy.B, request(legacy.B, "r"), migrate.RequestWithoutEvent, migrate.Blocked, migrate.Migratable},
	{"a request id without a commit, C", legacy.C, request(legacy.C, "r"), migrate.RequestWithoutEvent, migrate.Blocked, migrate.Migratable},
	{"a request id without a commit, D", legacy.D, request(legacy.D, "r"), migrate.RequestWithoutEvent, migrate.Blocked, migrate.Migratable},
	{"a commit's request id missing, A", legacy.A, forget(legacy.A), migrate.EventWithoutRequest, migrate.Migratable, migrate.Migratable},
	{"a commit's request id missing, B", legacy.B, forget(legacy.B), migrate.EventWithoutRequest, migrate.Migratable, migrate.Migratable},
	{"a commit's request id missing, C", legacy.C, forget(legacy.C), migrate.EventWithoutRequest, migrate.Migratable, migrate.Migratable},
	{"a commit's request id missing, D", legacy.D, forget(legacy.D), migrate.EventWithoutRequest, migrate.Blocked, migrate.Migratable},
	{"requests of no stream", legacy.B, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		request(legacy.B, "r")(t, s, s.typ.ID("nobody"))
	}, migrate.RequestWithoutEvent, migrate.Blocked, migrate.Migratable},
	{"index without commits", legacy.D, func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		k := fixture.KeysOf(legacy.D, id)
		require.NoError(t, s.rdb.ZAdd(t.Context(), k.IDs, redis.Z{Member: "lost\x00(0)"}).Err())
	}, migrate.IndexWithoutEvents, migrate.Blocked, migrate.Migratable},
	{"commits without an index", legacy.D, func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.Del(t.Context(), fixture.KeysOf(legacy.D, id).IDs).Err())
	}, migrate.IndexMissing, migrate.Migratable, migrate.Migratable},
}

var commitPlants = []plant{
	{"a gap", legacy.B, func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.ZRemRangeByScore(t.Context(), fixture.KeysOf(legacy.B, id).Events, "2", "2").Err())
		require.NoError(t, s.rdb.SRem(t.Context(), fixture.KeysOf(legacy.B, id).Requests, fixture.RequestID(id, 2)).Err())
	}, migrate.Gap, migrate.Blocked, migrate.Migratable},
	{"score and version", legacy.B, func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		k := fixture.KeysOf(legacy.B, id)
		require.NoError(t, s.rdb.ZRemRangeByScore(t.Context(), k.Events, "3", "3").Err())
		other := strings.Replace(fixture.Commit(legacy.B, id, 3, "{}"), `"version":3`, `"version":7`, 1)
		require.NoError(t, s.rdb.ZAdd(t.Context(), k.Events, redis.Z{Score: 3, Member: other}).Err())
	}, migrate.ScoreVersion, migrate.Blocked, migrate.Migratable},
	{"an unreadable commit", legacy.B, func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		add(legacy.B, `{"contextName":"x","aggregateId":`, 4)(t, s, id)
	}, migrate.Unreadable, migrate.Blocked, migrate.Migratable},
	{"somebody else's commit", legacy.B, func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		other := s.typ.ID("other")
		add(legacy.B, fixture.Commit(legacy.B, other, 4, "{}"), 4)(t, s, id)
		request(legacy.B, fixture.RequestID(other, 4))(t, s, id)
	}, migrate.WrongIdentity, migrate.Blocked, migrate.Migratable},
	{"two tenants", legacy.B, func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		require.NoError(t, fixture.Put(t.Context(), s.rdb, legacy.B, id.InTenant("t"),
			[]redis.Z{{Score: 1, Member: fixture.Commit(legacy.B, id.InTenant("t"), 1, "{}")}}, []any{fixture.RequestID(id.InTenant("t"), 1)}))
	}, migrate.SeveralTenants, migrate.Blocked, never},
	{"two eras", legacy.B, func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		require.NoError(t, fixture.Put(t.Context(), s.rdb, legacy.D, id,
			[]redis.Z{{Score: 1, Member: fixture.Commit(legacy.B, id, 1, "{}")}}, []any{fixture.RequestID(id, 1)}))
	}, migrate.SeveralSources, migrate.Blocked, never},
	{"an end", legacy.B, func(t *testing.T, s *scene, id es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.Expire(t.Context(), fixture.KeysOf(legacy.B, id).Events, time.Hour).Err())
	}, migrate.Expires, migrate.Blocked, migrate.Migratable},
	{"a wrong type", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.Set(t.Context(), fixture.KeysOf(legacy.C, s.typ.ID("x")).Events, "x", 0).Err())
	}, migrate.WrongType, migrate.Blocked, migrate.Migratable},
	{"not UTF-8", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.ZAdd(t.Context(), fixture.KeysOf(legacy.C, s.typ.ID("\xff")).Events, redis.Z{Member: "x"}).Err())
	}, migrate.NotUTF8, migrate.Blocked, migrate.Migratable},
}

func snap(era legacy.Eras, id, key string, version int) func(*testing.T, *scene, es.AggregateID) {
	return func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.Set(t.Context(), fixture.KeysOf(era, s.typ.ID(key)).Snapshot, fixture.Snapshot(era, s.typ.ID(id), version), 0).Err())
	}
}

var snapshotPlants = []plant{
	{"an orphan snapshot", legacy.A, snap(legacy.A, "nobody", "nobody", 1), migrate.OrphanSnapshot, migrate.Blocked, migrate.Migratable},
	{"a snapshot ahead", legacy.C, snap(legacy.C, "o@1", "o@1", 4), migrate.SnapshotAhead, migrate.Blocked, migrate.Migratable},
	{"somebody else's snapshot", legacy.C, snap(legacy.C, "o@1", "other", 3), migrate.WrongIdentity, migrate.Blocked, migrate.Migratable},
	{"two layouts of a snapshot", legacy.C, snap(legacy.B, "o@1", "o@1", 2), migrate.Superseded, migrate.Migratable, migrate.Migratable},
	{"an unreadable snapshot", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.Set(t.Context(), fixture.KeysOf(legacy.C, s.typ.ID("o@1")).Snapshot, `{"contextName":"x"}`, 0).Err())
	}, migrate.Unreadable, migrate.Blocked, migrate.Migratable},
}

var otherPlants = []plant{
	{"a reservation without a name", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, fixture.Reserve(t.Context(), s.rdb, "alice", `"u"`, forever))
	}, migrate.PrepareWithoutName, migrate.Blocked, migrate.Migratable},
	{"an ended reservation without a name", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, fixture.Reserve(t.Context(), s.rdb, "alice", `"u"`, past))
	}, migrate.PrepareWithoutName, migrate.Migratable, migrate.Migratable},
	{"canonical keys of the type", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.ZAdd(t.Context(), rediskey.Stream(s.typ.ID("new")), redis.Z{Member: "x"}).Err())
	}, migrate.CanonicalPresent, migrate.Blocked, never},
	{"a look-alike", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.Set(t.Context(), "prepare:things", "x", 0).Err())
	}, migrate.LookAlike, migrate.Migratable, migrate.Migratable},
	{"another type", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.SAdd(t.Context(), s.typ.String()+"2:es:req_idx", "x").Err())
	}, migrate.OtherType, migrate.Migratable, migrate.Migratable},
	{"foreign content", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.ZAdd(t.Context(), fixture.KeysOf(legacy.C, s.typ.ID("x")).Events, redis.Z{Member: "just text"}).Err())
	}, migrate.Foreign, migrate.Migratable, migrate.Migratable},
	{"MIG-03 a backlog", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.XGroupCreateMkStream(t.Context(), rediskey.Command(s.typ), "g", "0").Err())
		require.NoError(t, s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: rediskey.Command(s.typ), Values: []any{"msg", "{}"}}).Err())
	}, migrate.Backlog, migrate.Blocked, migrate.Migratable},
	{"MIG-03 a pending message", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		require.NoError(t, s.rdb.XGroupCreateMkStream(t.Context(), rediskey.Event(s.typ), "g", "0").Err())
		require.NoError(t, s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: rediskey.Event(s.typ), Values: []any{"msg", "{}"}}).Err())
		require.NoError(t, s.rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{rediskey.Event(s.typ), ">"}}).Err())
	}, migrate.Backlog, migrate.Blocked, migrate.Migratable},
	{"another database", legacy.C, func(t *testing.T, s *scene, _ es.AggregateID) {
		t.Helper()
		o := *s.rdb.(*redis.Client).Options()
		o.DB = 3
		other := redis.NewClient(&o)
		require.NoError(t, other.Set(t.Context(), "x", "x", 0).Err())
		require.NoError(t, other.Close())
	}, migrate.OtherDatabase, migrate.Migratable, migrate.Migratable},
}
