package preparekey_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/preparekey"
)

// every calls all operations.
func every(ctx context.Context, keys *preparekey.Keys[string]) map[string]error {
	errs := map[string]error{}
	_, errs["prepare"] = keys.Prepare(ctx, "k", "b", 0)
	_, errs["reprepare"] = keys.Reprepare(ctx, "k", "b", time.Hour)
	_, errs["reprepare from"] = keys.ReprepareFrom(ctx, "k", "a", "b", 0)
	_, errs["rollback"] = keys.Rollback(ctx, "k")
	_, errs["rollback from"] = keys.RollbackFrom(ctx, "k", "a")
	_, errs["get"] = keys.Get(ctx, "k")
	_, errs["get value"] = keys.GetValue(ctx, "k")
	return errs
}

func requireAll(t *testing.T, errs map[string]error, kind error) {
	t.Helper()
	for op, err := range errs {
		require.ErrorIs(t, err, kind, op)
		var at *es.Error
		require.ErrorAs(t, err, &at, op)
	}
}

func TestWhatIsNoReservationIsCorruptAndStays(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		keys, name := open[string](t, rdb)
		key := rediskey.Prepare(name, "k")
		require.NoError(t, rdb.Set(t.Context(), key, "text", 0).Err())
		requireAll(t, every(t.Context(), keys), es.ErrCorrupt)
		require.Equal(t, "text", rdb.Get(t.Context(), key).Val())
		require.NoError(t, rdb.Del(t.Context(), key).Err())

		for _, hash := range []map[string]string{
			{"value": `"a"`}, {"ttlAt": forever}, {"value": `"a"`, "ttlAt": "1.0"}, {"value": `"a"`, "ttlAt": ""},
			{"value": `"a"`, "ttlAt": "0x1"}, {"value": `"a"`, "ttlAt": " 1"}, {"value": `"a"`, "ttlAt": "nan"},
		} {
			require.NoError(t, rdb.HSet(t.Context(), key, hash).Err())
			requireAll(t, every(t.Context(), keys), es.ErrCorrupt)
			require.Equal(t, hash, fields(t, rdb, key))
			require.NoError(t, rdb.Del(t.Context(), key).Err())
		}
	})
}

func TestAWrongTypeAtTheRollbacksTokenChangesNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	keys, name := open[string](t, rdb)
	isTrue(t)(keys.Prepare(t.Context(), "k", "a", 0))
	require.NoError(t, rdb.LPush(t.Context(), rediskey.RolledBack(name, "k"), "x").Err())
	_, err := keys.Rollback(t.Context(), "k")
	require.ErrorIs(t, err, es.ErrCorrupt)
	_, err = keys.Get(t.Context(), "k")
	require.NoError(t, err)
}

func TestAFullMemoryReservesNothingAndFreesStill(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	keys, name := open[string](t, rdb)
	isTrue(t)(keys.Prepare(t.Context(), "k", "a", 0))
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := keys.Prepare(t.Context(), "new", "a", 0)
	require.ErrorIs(t, err, es.ErrOutOfMemory)
	require.Zero(t, rdb.Exists(t.Context(), rediskey.Prepare(name, "new")).Val())
	_, err = keys.ReprepareFrom(t.Context(), "k", "a", "b", 0)
	require.ErrorIs(t, err, es.ErrOutOfMemory)
	got, err := keys.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "a", got)
	isTrue(t)(keys.RollbackFrom(t.Context(), "k", "a"))
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	isTrue(t)(keys.Prepare(t.Context(), "k", "b", 0))
}

func TestAReadOnlyServerIsUnavailable(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	keys, _ := open[string](t, rdb)
	keys.Patience = 20 * time.Millisecond
	isTrue(t)(keys.Prepare(t.Context(), "k", "a", 0))
	require.NoError(t, rdb.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
	_, err := keys.Prepare(t.Context(), "new", "a", 0)
	require.ErrorIs(t, err, es.ErrUnavailable)
	_, err = keys.Rollback(t.Context(), "k")
	require.ErrorIs(t, err, es.ErrUnavailable)
	require.NoError(t, rdb.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	got, err := keys.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "a", got)
}

func TestPREP01_ForeverSurvivesARestart(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "appendonly yes", "appendfsync always")
	keys, _ := open[string](t, server.Client(t))
	isTrue(t)(keys.Prepare(t.Context(), "k", "a", 0))
	server.Restart(t)
	got, err := keys.GetValue(t.Context(), "k") // by a script that the new process does not know
	require.NoError(t, err)
	require.Equal(t, es.Prepared[string]{Value: "a"}, got)
	isFalse(t)(keys.Prepare(t.Context(), "k", "b", 0))
}

func TestReservationsOutliveAFailover(t *testing.T) {
	t.Parallel()
	sentinel := redistest.NewSentinel(t)
	rdb := sentinel.Client(t)
	keys, _ := open[string](t, rdb)
	keys.Patience = 30 * time.Second
	isTrue(t)(keys.Prepare(t.Context(), "k", "a", 0))
	require.NoError(t, rdb.Wait(t.Context(), 1, 10*time.Second).Err())
	sentinel.Failover(t)
	for {
		held, err := keys.Prepare(t.Context(), "k", "b", 0)
		require.False(t, held, "it is held on every server")
		if err == nil {
			break
		}
		require.True(t, errors.Is(err, es.ErrUncertain) || errors.Is(err, es.ErrUnavailable), "a connection to the old master: %v", err)
	}
	isTrue(t)(keys.RollbackFrom(t.Context(), "k", "a"))
}

func TestPREP11_ReadyReadsTheEvictionPolicy(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	for policy, want := range map[string]struct {
		err error
		log string
	}{
		"noeviction": {}, "volatile-lru": {log: "maxmemory-policy should be noeviction"}, "volatile-ttl": {log: "policy=volatile-ttl"},
		"allkeys-lru": {err: es.ErrEviction}, "allkeys-random": {err: es.ErrEviction},
	} {
		require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
		log, err := ready(t, rdb)
		require.ErrorIs(t, err, want.err, policy)
		require.Contains(t, log, want.log)
		require.Equal(t, want.log == "", log == "", log)
	}
}

func TestPREP11_ReadySaysWhereTheServerDoesNotTell(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "user mute on nopass ~* +@all -info -config")
	o := server.Options()
	o.Username, o.Password = "mute", "any"
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	log, err := ready(t, rdb)
	require.NoError(t, err)
	require.Contains(t, log, "does not say which keys it evicts")
	require.Contains(t, log, "NOPERM")
	keys, name := open[string](t, rdb)
	plant(t, rdb, rediskey.Prepare(name, "k"), `"a"`, "1000")
	removed, err := keys.Sweep(t.Context())
	require.NoError(t, err, "a server that does not say whether it is part of a cluster")
	require.Equal(t, 1, removed)
}

func TestPREP11_ReadyAsksEveryMaster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t, 0)
	log, err := ready(t, cluster.Client(t))
	require.NoError(t, err)
	require.Empty(t, log)
	require.NoError(t, cluster.Nodes[2].Client(t).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lfu").Err())
	_, err = ready(t, cluster.Client(t))
	require.ErrorIs(t, err, es.ErrEviction)
	require.True(t, strings.HasPrefix(err.Error(), "prepare keys ready: "))
}

func ready(t *testing.T, rdb redis.UniversalClient) (log string, err error) {
	t.Helper()
	keys, _ := open[string](t, rdb)
	var b bytes.Buffer
	keys.Logger = slog.New(slog.NewTextHandler(&b, nil))
	err = keys.Ready(t.Context())
	return b.String(), err
}
