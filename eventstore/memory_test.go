package eventstore_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/redistest"
)

// Not parallel: the heap is the process's, and no other test may run.
func TestBIG03_LoadingFiftyThousandCommitsKeepsTheHeapFlat(t *testing.T) {
	const n, limit = 50_000, 8 << 20
	typ := newType()
	s := open(redistest.Shared(t).Client(t), typ)
	id := typ.ID("a-1")
	for version := 1; version <= n; version += eventstore.MaxBatch {
		_, err := s.Append(t.Context(), es.AppendOptions{}, commitsOf(id, version, eventstore.MaxBatch)...)
		require.NoError(t, err)
	}
	before := heap()
	seen := 0
	for c, err := range s.Load(t.Context(), id, es.Versions{}) {
		require.NoError(t, err)
		if seen++; seen%5_000 == 0 {
			require.Equal(t, seen, c.Version)
			require.Less(t, int64(heap())-int64(before), int64(limit), "after %d commits", seen)
		}
	}
	require.Equal(t, n, seen)
	require.NoError(t, s.Purge(t.Context(), id, n, eventstore.PurgeOptions{}))
}

// heap is what is in use once all garbage is gone.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
