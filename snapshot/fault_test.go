package snapshot_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
)

func TestSNAP03_FaultOfTheServerIsNotTheAbsenceOfASnapshot(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	o := server.Options()
	o.ReadTimeout, o.MaxRetries = 100*time.Millisecond, -1
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	id := newID()
	s := newStore(rdb, id)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 1)))
	server.Pause(t)
	_, err := s.Load(t.Context(), id)
	requireFault(t, err)
	_, err = s.Version(t.Context(), id)
	requireFault(t, err)
	requireFault(t, s.Save(t.Context(), cartAt(id, 2)))
	server.Kill(t)
	_, err = s.Load(t.Context(), id)
	requireFault(t, err)
}

// requireFault wants an error that no repository answers by replaying.
func requireFault(t *testing.T, err error) {
	t.Helper()
	require.True(t, errors.Is(err, es.ErrUncertain) || errors.Is(err, es.ErrUnavailable), "%v", err)
	require.NotErrorIs(t, err, es.ErrNotFound)
	require.NotErrorIs(t, err, es.ErrCorrupt)
}

func TestSCR08_ReadsGoOnWhereMemoryIsFull(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	id := newID()
	s := newStore(rdb, id)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 5)))
	old := stored(t, rdb, id)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())

	got, err := s.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 5, got.Version)
	requireVersion(t, s, id, 5)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 4)), "nothing to write")
	require.ErrorIs(t, s.Save(t.Context(), cartAt(id, 6)), es.ErrOutOfMemory)
	_, err = s.Replace(t.Context(), []byte(old), cartAt(id, 6))
	require.ErrorIs(t, err, es.ErrOutOfMemory)
	require.Equal(t, old, stored(t, rdb, id))
	require.NoError(t, s.Drop(t.Context(), id))
}

func TestServerThatRefusesWritesIsUnavailable(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t, "min-replicas-to-write 5").Client(t)
	id := newID()
	s := newStore(rdb, id)
	require.ErrorIs(t, s.Save(t.Context(), cartAt(id, 1)), es.ErrUnavailable)
	require.NoError(t, rdb.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	require.NoError(t, s.Save(t.Context(), cartAt(id, 1)))
	require.NoError(t, rdb.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	require.ErrorIs(t, s.Save(t.Context(), cartAt(id, 2)), es.ErrUnavailable, "READONLY")
	requireVersion(t, s, id, 1)
}

func TestScriptThatTheServerForgotIsSentAgain(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	id := newID()
	s := newStore(rdb, id)
	for version := range 3 {
		require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
		require.NoError(t, s.Save(t.Context(), cartAt(id, version)))
	}
	requireVersion(t, s, id, 2)
}
