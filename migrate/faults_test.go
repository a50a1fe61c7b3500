package migrate_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
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

// audited is a scene with a store of an era and its manifest.
func audited(t *testing.T, era legacy.Eras) (*scene, []es.AggregateID, *os.File) {
	t.Helper()
	s := newScene(t)
	ids, f := s.write(t, era), file(t)
	report, err := s.audit().Run(t.Context(), s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	return s, ids, f
}

func (s *scene) copy(t *testing.T, f *os.File) migrate.Result {
	t.Helper()
	r, err := migrate.Copy{Pace: s.pace}.Run(t.Context(), s.rdb, s.rdb, f)
	require.NoError(t, err)
	return r
}

func (s *scene) verify(t *testing.T, f *os.File) migrate.Result {
	t.Helper()
	r, err := migrate.Verify{Pace: s.pace}.Run(t.Context(), s.rdb, s.rdb, f)
	require.NoError(t, err)
	return r
}

func (s *scene) finish(t *testing.T, f *os.File) migrate.Result {
	t.Helper()
	r, err := migrate.Finish{Pace: s.pace, WritersStopped: true}.Run(t.Context(), s.rdb, s.rdb, f)
	require.NoError(t, err)
	return r
}

// lines are a manifest's lines, but for the end.
func lines(t *testing.T, f *os.File) []string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	require.Contains(t, all[len(all)-1], `"end"`)
	all = all[:len(all)-1]
	slices.Sort(all)
	return all
}

// The audit is killed again and again; the last run ends with the same manifest as one
// that nobody disturbed, and reads nothing twice but what was not written yet.
func TestCLU08_AuditGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	for _, era := range []legacy.Eras{legacy.B, legacy.C, legacy.D} {
		t.Run(era.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.writeMany(t, era, 500)
			whole, all := file(t), &cut{left: -1}
			_, err := s.audit().Run(t.Context(), s.hooked(t, all), whole)
			require.NoError(t, err)
			r := rand.New(rand.NewPCG(1, 2))
			for range 5 {
				f, spent := file(t), 0
				require.NoError(t, appendTo(f, `{"manifest":{"for`))
				for range 3 {
					c := &cut{left: all.count/3 + r.IntN(all.count/3)}
					report, err := s.audit().Run(t.Context(), s.hooked(t, c), f)
					spent = c.count
					if err == nil {
						break
					}
					require.Equal(t, migrate.Unfinished, report.Outcome())
					_, err = migrate.Copy{}.Run(t.Context(), s.rdb, s.rdb, f)
					require.ErrorIs(t, err, es.ErrInvalid, "half a manifest is none")
					require.NoError(t, appendTo(f, `{"record":{"key":"half a li`))
				}
				last := &cut{left: -1}
				report, err := s.audit().Run(t.Context(), s.hooked(t, last), f)
				if err == nil {
					require.Equal(t, migrate.Migratable, report.Outcome())
					spent = last.count
				} else {
					require.ErrorContains(t, err, "complete")
				}
				require.Less(t, spent, all.count*3/4, "most was known already")
				require.Equal(t, lines(t, whole), lines(t, f))
			}
		})
	}
}

// writeMany writes aggregates with one commit each, so that many share a bucket.
func (s *scene) writeMany(t *testing.T, era legacy.Eras, n int) (ids []es.AggregateID) {
	t.Helper()
	for i := range n {
		id := s.typ.ID(fmt.Sprintf("o-%d", i))
		require.NoError(t, fixture.Write(t.Context(), s.rdb, era, id, 1))
		ids = append(ids, id)
	}
	return ids
}

func (s *scene) hooked(t *testing.T, h redis.Hook) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(s.rdb.(*redis.Client).Options())
	t.Cleanup(func() { _ = rdb.Close() })
	rdb.AddHook(h)
	return rdb
}

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

func appendTo(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), size(f))
	return err
}

func size(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func TestAuditGoesOnOnlyWithItsOwnManifest(t *testing.T) {
	t.Parallel()
	s, _, f := audited(t, legacy.C)
	_, err := s.audit().Run(t.Context(), s.rdb, f)
	require.ErrorIs(t, err, es.ErrInvalid, "it is complete")

	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	half := file(t)
	_, err = half.Write(b[:bytes.LastIndexByte(bytes.TrimSpace(b), '\n')+1])
	require.NoError(t, err)
	a := s.audit()
	a.Accept = []migrate.Code{migrate.Gap}
	_, err = a.Run(t.Context(), s.rdb, half)
	require.ErrorIs(t, err, es.ErrInvalid, "the knobs are others")

	other := file(t)
	_, err = other.WriteString("not a manifest\n")
	require.NoError(t, err)
	_, err = s.audit().Run(t.Context(), s.rdb, other)
	require.ErrorIs(t, err, es.ErrInvalid)

	b[bytes.Index(b, []byte(`"count"`))+8]++
	changed := file(t)
	_, err = changed.Write(b)
	require.NoError(t, err)
	_, err = migrate.Copy{}.Run(t.Context(), s.rdb, s.rdb, changed)
	require.ErrorContains(t, err, "changed")
}

// A source that changes after the audit is found by each step that reads it.
func TestChangedSourceIsFound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		do   func(t *testing.T, s *scene, id es.AggregateID)
		code migrate.Code
	}{
		"a commit more": {func(t *testing.T, s *scene, id es.AggregateID) {
			t.Helper()
			add(legacy.C, fixture.Commit(legacy.C, id, 2, "{}"), 2)(t, s, id)
		}, migrate.Changed},
		"a commit less": {func(t *testing.T, s *scene, id es.AggregateID) {
			t.Helper()
			require.NoError(t, s.rdb.Del(t.Context(), fixture.KeysOf(legacy.C, id).Events).Err())
		}, migrate.Gone},
		"another snapshot": {func(t *testing.T, s *scene, id es.AggregateID) {
			t.Helper()
			require.NoError(t, s.rdb.Append(t.Context(), fixture.KeysOf(legacy.C, id).Snapshot, " ").Err())
		}, migrate.Changed},
		"another type": {func(t *testing.T, s *scene, id es.AggregateID) {
			t.Helper()
			require.NoError(t, s.rdb.Del(t.Context(), fixture.KeysOf(legacy.C, id).Events).Err())
			require.NoError(t, s.rdb.Set(t.Context(), fixture.KeysOf(legacy.C, id).Events, "x", 0).Err())
		}, migrate.Changed},
	} {
		t.Run("before copy: "+name, func(t *testing.T) {
			t.Parallel()
			s, ids, f := audited(t, legacy.C)
			change.do(t, s, ids[0])
			r := s.copy(t, f)
			require.Equal(t, migrate.Blocked, r.Outcome())
			require.Equal(t, map[migrate.Code]int{change.code: 1}, r.ByCode)
			_, err := migrate.Verify{}.Run(t.Context(), s.rdb, s.rdb, f)
			require.ErrorIs(t, err, es.ErrInvalid, "it was not copied to its end")
		})
		t.Run("before verify: "+name, func(t *testing.T) {
			t.Parallel()
			s, ids, f := audited(t, legacy.C)
			s.copy(t, f)
			change.do(t, s, ids[0])
			r := s.verify(t, f)
			require.Equal(t, migrate.Blocked, r.Outcome())
			require.Equal(t, map[migrate.Code]int{change.code: 1}, r.ByCode)
			_, err := migrate.Finish{WritersStopped: true}.Run(t.Context(), s.rdb, s.rdb, f)
			require.ErrorIs(t, err, es.ErrInvalid, "verify has not passed")
		})
	}
}

func TestKeysThatCameAfterTheAuditAreFound(t *testing.T) {
	t.Parallel()
	s, _, f := audited(t, legacy.C)
	s.copy(t, f)
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	require.NoError(t, fixture.Write(t.Context(), s.rdb, legacy.B, s.typ.ID("late"), 1))
	r := s.finish(t, f)
	require.Equal(t, migrate.Blocked, r.Outcome())
	require.Equal(t, map[migrate.Code]int{migrate.Unlisted: 3}, r.ByCode)
	require.Zero(t, r.Keys, "nothing is removed")
	require.Equal(t, map[migrate.Code]int{migrate.Unlisted: 3}, s.verify(t, f).ByCode)
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

// An old writer goes on through everything: its changes are kept and named, and the keys
// that keep a new service from starting stay.
func TestMIG07_FinishKeepsWhatAnOldWriterChanged(t *testing.T) {
	t.Parallel()
	s, ids, f := audited(t, legacy.C)
	s.copy(t, f)
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	key := fixture.KeysOf(legacy.C, ids[4]).Events
	add(legacy.C, fixture.Commit(legacy.C, ids[4], 6, "{}"), 6)(t, s, ids[4])
	r := s.finish(t, f)
	require.Equal(t, migrate.Blocked, r.Outcome())
	require.Equal(t, map[migrate.Code]int{migrate.Changed: 1}, r.ByCode)
	require.Equal(t, key, r.Problems.Problems[0].Key)
	require.Equal(t, int64(6), s.rdb.ZCard(t.Context(), key).Val())
	require.Equal(t, int64(1), s.rdb.Exists(t.Context(), fixture.KeysOf(legacy.C, ids[4]).Requests).Val(), "the sentinel")
}

// The key changes between the moment finish reads it and the one it removes it.
func TestMIG07_FinishReadsInTheTransactionThatRemoves(t *testing.T) {
	t.Parallel()
	s, ids, f := audited(t, legacy.A)
	s.copy(t, f)
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	rdb := s.hooked(t, &meddler{before: "multi", do: sync.OnceFunc(func() {
		for _, id := range ids {
			add(legacy.A, "late", 99)(t, s, id)
		}
	})})
	r, err := migrate.Finish{Pace: s.pace, WritersStopped: true}.Run(t.Context(), rdb, rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Blocked, r.Outcome())
	for _, id := range ids {
		require.Contains(t, s.rdb.ZRange(t.Context(), fixture.KeysOf(legacy.A, id).Events, 0, -1).Val(), "late")
	}
}

// meddler does something before a pipeline with such a command is sent.
type meddler struct {
	cut
	before string
	do     func()
}

func (m *meddler) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (m *meddler) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Name() == m.before }) {
			m.do()
		}
		return next(ctx, cmds)
	}
}

func TestMIG07_FinishWantsProofThatOldWritersStopped(t *testing.T) {
	t.Parallel()
	s, _, f := audited(t, legacy.B)
	s.copy(t, f)
	s.verify(t, f)
	_, err := migrate.Finish{}.Run(t.Context(), s.rdb, s.rdb, f)
	require.ErrorIs(t, err, es.ErrInvalid)

	ctx := t.Context()
	require.NoError(t, s.rdb.Do(ctx, "ACL", "SETUSER", "old", "on", ">pw", "~*", "+@all").Err())
	o := *s.rdb.(*redis.Client).Options()
	o.Username, o.Password = "old", "pw"
	old := redis.NewClient(&o)
	defer old.Close() //nolint:errcheck // the test's end
	r, err := migrate.Finish{Pace: s.pace, OldWriters: old}.Run(ctx, s.rdb, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, map[migrate.Code]int{migrate.WritersActive: 1}, r.ByCode)
	require.Zero(t, r.Keys)

	require.NoError(t, s.rdb.Do(ctx, "ACL", "SETUSER", "old", "-@write").Err())
	r, err = migrate.Finish{Pace: s.pace, OldWriters: old}.Run(ctx, s.rdb, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
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

// A copy that is not there keeps its source, whatever verify said before.
func TestFinishKeepsWhatHasNoCopy(t *testing.T) {
	t.Parallel()
	s, ids, f := audited(t, legacy.B)
	s.copy(t, f)
	s.verify(t, f)
	require.NoError(t, s.rdb.Del(t.Context(), rediskey.Stream(ids[0]), rediskey.Snapshot(ids[1])).Err())
	r := s.finish(t, f)
	require.Equal(t, map[migrate.Code]int{migrate.TargetDiffers: 2}, r.ByCode)
	require.Equal(t, int64(2), s.rdb.Exists(t.Context(), fixture.KeysOf(legacy.B, ids[0]).Events, fixture.KeysOf(legacy.B, ids[1]).Snapshot).Val())

	_, err := migrate.Rollback{}.Run(t.Context(), s.rdb, s.rdb, f)
	require.ErrorIs(t, err, es.ErrInvalid, "there is nothing to go back to")
	_, err = migrate.Copy{}.Run(t.Context(), s.rdb, s.rdb, f)
	require.ErrorIs(t, err, es.ErrInvalid)
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
