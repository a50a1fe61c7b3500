package migrate_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/rediskey"
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

func (s *scene) hooked(t *testing.T, h redis.Hook) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(s.rdb.(*redis.Client).Options())
	t.Cleanup(func() { _ = rdb.Close() })
	rdb.AddHook(h)
	return rdb
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
