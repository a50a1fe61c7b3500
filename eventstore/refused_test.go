package eventstore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/redistest"
)

// trouble is a store with one commit, on a server that will refuse for a while.
type trouble struct {
	admin  *redis.Client
	store  *eventstore.Store
	commit es.Commit
}

func newTrouble(t *testing.T, config ...string) trouble {
	t.Helper()
	rdb := redistest.Standalone(t, config...).Client(t)
	typ := newType()
	s := open(rdb, typ)
	s.Patience = 100 * time.Millisecond
	c := commitOf(typ.ID("a-1"), 1)
	add(t, s, c)
	return trouble{rdb, s, c}
}

func (tr trouble) set(t *testing.T, option, value string) {
	t.Helper()
	require.NoError(t, tr.admin.ConfigSet(t.Context(), option, value).Err())
}

// requireRefusesWrites says that writes are refused by name and leave nothing, that
// reads go on, and that the same writes succeed once mend was called.
func (tr trouble) requireRefusesWrites(t *testing.T, mend func(), kinds ...error) {
	t.Helper()
	id, other := tr.commit.Aggregate, tr.commit.Aggregate.Type.ID("a-2")
	before := traces(t, tr.admin, id)
	next, first := commitsOf(id, 2, 3), commitOf(other, 1)
	refuse := func(commits ...es.Commit) {
		t.Helper()
		for range 2 {
			_, err := tr.store.Append(t.Context(), es.AppendOptions{Note: true}, commits...)
			for _, kind := range append(kinds, es.ErrUnavailable) {
				require.ErrorIs(t, err, kind)
			}
			require.NotErrorIs(t, err, es.ErrUncertain)
		}
	}
	refuse(next...)
	refuse(first)
	require.Equal(t, before, traces(t, tr.admin, id))
	require.Empty(t, traces(t, tr.admin, other)["stream"])
	require.Empty(t, traces(t, tr.admin, other)["requests"])
	requireStored(t, tr.store, id, tr.commit)
	require.NoError(t, open(tr.admin, id.Type).Ready(within(t, eventually), id.Type), "the guard only reads")

	mend()
	for _, commits := range [][]es.Commit{next, {first}} {
		done, err := tr.store.Append(t.Context(), es.AppendOptions{Note: true}, commits...)
		require.NoError(t, err)
		require.Equal(t, es.Appended{Publish: true}, done)
	}
	requireStored(t, tr.store, id, append([]es.Commit{tr.commit}, next...)...)
	requireStored(t, tr.store, other, first)
}

func TestFAIL04_FullMemoryIsRefusedByName(t *testing.T) {
	t.Parallel()
	tr := newTrouble(t)
	tr.set(t, "maxmemory", "1")
	tr.requireRefusesWrites(t, func() { tr.set(t, "maxmemory", "0") }, es.ErrOutOfMemory)
}

func TestFAIL05_FailingSnapshotsToDiskAreRefusedByName(t *testing.T) {
	t.Parallel()
	tr := newTrouble(t, "save 3600 1000000")
	dir := tr.admin.ConfigGet(t.Context(), "dir").Val()["dir"]
	inTheWay := filepath.Join(dir, "dump.rdb")
	require.NoError(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700))
	require.Error(t, tr.admin.Save(t.Context()).Err())
	save := func(status string) {
		require.NoError(t, tr.admin.BgSave(t.Context()).Err())
		require.Eventually(t, func() bool {
			info := tr.admin.InfoMap(t.Context(), "persistence").Val()["Persistence"]
			return info["rdb_bgsave_in_progress"] == "0" && info["rdb_last_bgsave_status"] == status
		}, eventually, tick)
	}
	save("err")
	tr.requireRefusesWrites(t, func() {
		require.NoError(t, os.RemoveAll(inTheWay))
		save("ok")
	})
}

func TestFAIL06_MissingReplicasAreRefusedByName(t *testing.T) {
	t.Parallel()
	tr := newTrouble(t)
	tr.set(t, "min-replicas-to-write", "5")
	tr.requireRefusesWrites(t, func() { tr.set(t, "min-replicas-to-write", "0") })
}

func TestFAIL01_ADemotedMasterIsRefusedByName(t *testing.T) {
	t.Parallel()
	tr := newTrouble(t)
	require.NoError(t, tr.admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	tr.requireRefusesWrites(t, func() { require.NoError(t, tr.admin.ReplicaOf(t.Context(), "NO", "ONE").Err()) })
}

// With the connections still open, an append waits for the master that comes.
func TestFAIL01_AnAppendOutlivesADemotion(t *testing.T) {
	t.Parallel()
	tr := newTrouble(t)
	tr.store.Patience = eventually
	require.NoError(t, tr.admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	done := make(chan error, 1)
	next := commitOf(tr.commit.Aggregate, 2)
	go func() { done <- appendOne(t, tr.store, next) }()
	require.Never(t, func() bool { return len(done) > 0 }, 300*time.Millisecond, tick)
	require.NoError(t, tr.admin.ReplicaOf(t.Context(), "NO", "ONE").Err())
	back := time.Now()
	require.NoError(t, <-done)
	require.Less(t, time.Since(back), 10*time.Second)
	requireStored(t, tr.store, next.Aggregate, tr.commit, next)
}

func TestFAIL03_AServerThatIsLoadingIsWaitedFor(t *testing.T) {
	t.Parallel()
	// It answers after each 2 MB that it has loaded: 20 times.
	server := redistest.Standalone(t, "rdbcompression no", "lua-time-limit 60000")
	admin := server.Client(t)
	typ := newType()
	one := server.Options()
	one.MaxRetries = -1
	probe := redis.NewClient(one)
	t.Cleanup(func() { _ = probe.Close() })
	through, hasty, starting := open(server.Client(t), typ), open(probe, typ), open(server.Client(t), typ)
	through.Patience, starting.Patience, hasty.Patience = eventually, time.Nanosecond, 10*time.Millisecond
	commits := commitsOf(typ.ID("a-1"), 1, 2)
	add(t, through, commits[0])
	require.NoError(t, hasty.Ready(t.Context(), typ))
	require.NoError(t, admin.Do(t.Context(), "DEBUG", "POPULATE", "20000", "ballast", "2000").Err())
	require.NoError(t, admin.ConfigSet(t.Context(), "key-load-delay", "50").Err())

	o := server.Options()
	o.ReadTimeout, o.MaxRetries = eventually, -1
	slow := redis.NewClient(o)
	t.Cleanup(func() { _ = slow.Close() })
	reloaded := make(chan error, 1)
	go func() { reloaded <- slow.Do(t.Context(), "DEBUG", "RELOAD").Err() }()
	require.Eventually(t, func() bool { return redis.HasErrorPrefix(probe.Ping(t.Context()).Err(), "LOADING") }, eventually, time.Millisecond)

	_, err := hasty.Last(t.Context(), typ.ID("a-1"))
	require.ErrorIs(t, err, es.ErrUnavailable, "not: there is no such aggregate")
	_, err = outcome(hasty.Load(t.Context(), typ.ID("a-1"), es.Versions{}))
	require.ErrorIs(t, err, es.ErrUnavailable)
	require.ErrorIs(t, appendOne(t, hasty, commits[1]), es.ErrUnavailable)
	require.Empty(t, reloaded, "it was loading all the while")

	require.NoError(t, starting.Ready(within(t, eventually), typ), "who starts waits")
	requireStored(t, through, typ.ID("a-1"), commits[0])
	add(t, through, commits[1])
	require.NoError(t, <-reloaded)
	requireStored(t, starting, typ.ID("a-1"), commits...)
}
