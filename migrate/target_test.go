package migrate_test

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/migrate"
)

func TestManyAggregatesInOneBucketAreTakenBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.writeMany(t, legacy.B, 2000)
	before, f := s.rdb.DBSize(t.Context()).Val(), file(t)
	_, err := s.audit().Run(t.Context(), s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, int64(2000), s.copy(t, f).Aggregates)
	r, err := migrate.Rollback{Pace: s.pace}.Run(t.Context(), s.rdb, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.ByCode)
	require.Equal(t, int64(2000), r.Aggregates)
	require.Equal(t, before, s.rdb.DBSize(t.Context()).Val())
}

// Somebody writes between the moment copy looks and the one it writes.
func TestMIG02_AKeyThatComesWhileCopyWritesIsTold(t *testing.T) {
	t.Parallel()
	s, ids, f := audited(t, legacy.B)
	theirs := s.hooked(t, &meddler{before: "zadd", do: sync.OnceFunc(func() {
		require.NoError(t, s.rdb.Set(t.Context(), rediskey.Snapshot(ids[0]), "theirs", 0).Err())
		require.NoError(t, s.rdb.ZAdd(t.Context(), rediskey.Stream(ids[1]), redis.Z{Score: 1, Member: "theirs"}).Err())
		require.NoError(t, s.rdb.SAdd(t.Context(), rediskey.Requests(ids[2]), fixture.RequestID(ids[2], 1)).Err())
	})})
	r, err := migrate.Copy{Pace: s.pace}.Run(t.Context(), theirs, theirs, f)
	require.NoError(t, err)
	require.Equal(t, map[migrate.Code]int{migrate.TargetDiffers: 2}, r.ByCode, "%v", r.Problems)
	require.Equal(t, []int64{16, 16}, []int64{r.Aggregates, r.Snapshots})
	require.Equal(t, "theirs", s.rdb.Get(t.Context(), rediskey.Snapshot(ids[0])).Val())
}

// A changed target is found by verify, whatever was changed in it.
func TestMIG05_ChangedTargetIsFound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *scene, ctx context.Context, id es.AggregateID) error{
		"a commit less": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.ZRemRangeByRank(ctx, rediskey.Stream(id), 0, 0).Err()
		},
		"a commit more": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.ZAdd(ctx, rediskey.Stream(id), redis.Z{Score: 9, Member: "x"}).Err()
		},
		"another score": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.ZIncrBy(ctx, rediskey.Stream(id), 9, s.rdb.ZRange(ctx, rediskey.Stream(id), 0, 0).Val()[0]).Err()
		},
		"a request less": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.SPop(ctx, rediskey.Requests(id)).Err()
		},
		"a request more": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.SAdd(ctx, rediskey.Requests(id), "x").Err()
		},
		"not in the index": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.ZRem(ctx, rediskey.EventKeys(id).IDs, rediskey.EventKeys(id).Member).Err()
		},
		"too much in the index": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.ZAdd(ctx, rediskey.EventKeys(id).IDs, redis.Z{Member: "0061.KDAp"}).Err()
		},
		"no snapshot": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.Del(ctx, rediskey.Snapshot(id)).Err()
		},
		"another snapshot": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.Append(ctx, rediskey.Snapshot(id), "x").Err()
		},
		"another type": func(s *scene, ctx context.Context, id es.AggregateID) error {
			return s.rdb.Set(ctx, rediskey.Stream(id), "x", 0).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ids, f := audited(t, legacy.B)
			s.copy(t, f)
			require.NoError(t, change(s, t.Context(), ids[0]))
			r := s.verify(t, f)
			require.Equal(t, migrate.Blocked, r.Outcome())
			require.Equal(t, map[migrate.Code]int{migrate.TargetDiffers: 1}, r.ByCode, "%v", r.Problems)
		})
	}
}

// What is at the target already is never written over.
func TestMIG02_TargetThatIsNotEmptyIsRefused(t *testing.T) {
	t.Parallel()
	s, ids, f := audited(t, legacy.B)
	require.NoError(t, s.rdb.ZAdd(t.Context(), rediskey.Stream(ids[0]), redis.Z{Score: 1, Member: "theirs"}).Err())
	r := s.copy(t, f)
	require.Equal(t, migrate.Blocked, r.Outcome())
	require.Equal(t, []migrate.Problem{{Code: migrate.TargetNotEmpty, Key: rediskey.Stream(ids[0]), Blocks: true}}, r.Problems.Problems)
	require.Zero(t, r.Keys)

	// It comes while the copy is under way: left as it is, and told.
	require.NoError(t, s.rdb.Del(t.Context(), rediskey.Stream(ids[0])).Err())
	s.copy(t, f)
	require.NoError(t, s.rdb.Del(t.Context(), rediskey.Stream(ids[0])).Err())
	require.NoError(t, s.rdb.ZAdd(t.Context(), rediskey.Stream(ids[0]), redis.Z{Score: 9, Member: "theirs"}).Err())
	require.NoError(t, s.rdb.Set(t.Context(), rediskey.Snapshot(ids[1]), "theirs", 0).Err())
	r = s.copy(t, f)
	require.Equal(t, migrate.Blocked, r.Outcome())
	require.Equal(t, map[migrate.Code]int{migrate.TargetDiffers: 2}, r.ByCode)
	require.Equal(t, []string{"theirs"}, s.rdb.ZRange(t.Context(), rediskey.Stream(ids[0]), 0, -1).Val())
	require.Equal(t, "theirs", s.rdb.Get(t.Context(), rediskey.Snapshot(ids[1])).Val())
	require.Equal(t, int64(16), r.Aggregates, "what is confirmed, and no more")
}

// Writes are refused in the middle: the run fails, and goes on when there is room.
func TestMIG05_RefusedWritesAreNoSuccess(t *testing.T) {
	t.Parallel()
	s, _, f := audited(t, legacy.D)
	target := redistest.Standalone(t).Client(t)
	ctx := t.Context()
	require.NoError(t, target.ConfigSet(ctx, "maxmemory", "1").Err())
	r, err := migrate.Copy{Pace: s.pace}.Run(ctx, s.rdb, target, f)
	require.ErrorIs(t, err, es.ErrOutOfMemory)
	require.Equal(t, migrate.Unfinished, r.Outcome())
	require.NoError(t, target.ConfigSet(ctx, "maxmemory", "0").Err())
	r, err = migrate.Copy{Pace: s.pace}.Run(ctx, s.rdb, target, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, r.Outcome())
	require.Equal(t, int64(17), r.Aggregates)
}

// To another server: the source is as it was until finish, and no serialized value is
// sent, which another version would refuse.
func TestMIG06_AnotherServerGetsPlainCommands(t *testing.T) {
	t.Parallel()
	s, ids, f := audited(t, legacy.C)
	before := s.rdb.DBSize(t.Context()).Val()
	server := redistest.Standalone(t)
	proxy := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr = proxy.Addr
	target := redis.NewClient(o)
	defer target.Close() //nolint:errcheck // the test's end
	dry, err := migrate.Copy{Pace: s.pace, DryRun: true}.Run(t.Context(), s.rdb, target, f)
	require.NoError(t, err)
	require.Equal(t, []int64{17, 48, 0}, []int64{dry.Aggregates, dry.Events, dry.Keys})
	require.Zero(t, target.DBSize(t.Context()).Val(), "nothing is written")

	for _, step := range []func() (migrate.Result, error){
		func() (migrate.Result, error) { return migrate.Copy{Pace: s.pace}.Run(t.Context(), s.rdb, target, f) },
		func() (migrate.Result, error) { return migrate.Verify{Pace: s.pace}.Run(t.Context(), s.rdb, target, f) },
	} {
		r, err := step()
		require.NoError(t, err)
		require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
		require.Equal(t, before, s.rdb.DBSize(t.Context()).Val())
	}
	for _, command := range []string{"RESTORE", "MIGRATE", "EVAL", "EVALSHA"} {
		require.Zero(t, proxy.Count(command), command)
	}
	r, err := migrate.Finish{Pace: s.pace, WritersStopped: true}.Run(t.Context(), s.rdb, target, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
	require.Zero(t, s.rdb.DBSize(t.Context()).Val())
	require.Equal(t, int64(17), target.Exists(t.Context(), streams(ids)...).Val())
}

func streams(ids []es.AggregateID) (keys []string) {
	for _, id := range ids {
		keys = append(keys, rediskey.Stream(id))
	}
	return keys
}

func TestRollbackKeepsWhatSomebodyChanged(t *testing.T) {
	t.Parallel()
	s, ids, f := audited(t, legacy.C)
	_, err := migrate.Rollback{}.Run(t.Context(), s.rdb, s.rdb, f)
	require.ErrorIs(t, err, es.ErrInvalid, "nothing was copied")
	s.copy(t, f)
	ctx := t.Context()
	require.NoError(t, s.rdb.ZAdd(ctx, rediskey.Stream(ids[0]), redis.Z{Score: 9, Member: "new"}).Err())
	require.NoError(t, s.rdb.SAdd(ctx, rediskey.Requests(ids[1]), "new").Err())
	require.NoError(t, s.rdb.Set(ctx, rediskey.Snapshot(ids[2]), "new", 0).Err())
	add(legacy.C, fixture.Commit(legacy.C, ids[3], 5, "{}"), 5)(t, s, ids[3])
	require.NoError(t, s.rdb.Del(ctx, fixture.KeysOf(legacy.C, ids[4]).Snapshot).Err())
	r, err := migrate.Rollback{Pace: s.pace}.Run(ctx, s.rdb, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, map[migrate.Code]int{migrate.TargetDiffers: 3, migrate.Changed: 1, migrate.Gone: 1}, r.ByCode)
	require.Equal(t, int64(29), r.Keys)
	require.Equal(t, int64(2), s.rdb.Exists(ctx, rediskey.Stream(ids[3]), rediskey.Snapshot(ids[4])).Val(), "no copy goes whose source is not what was copied")
	require.Equal(t, int64(3), s.rdb.Exists(ctx, rediskey.Stream(ids[0]), rediskey.Stream(ids[1]), rediskey.Snapshot(ids[2])).Val())
	require.Zero(t, s.rdb.Exists(ctx, rediskey.Stream(ids[2]), rediskey.Requests(ids[2])).Val())
}
