package snapshot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
)

// sizes are those of the state, in bytes.
var sizes = map[string]int{"1kB": 1 << 10, "10kB": 10 << 10}

func sized(id es.AggregateID, version, size int) es.Snapshot[cart] {
	snap := cartAt(id, version)
	snap.State.Lines = nil
	for range size / 100 {
		snap.State.Lines = append(snap.State.Lines, strings.Repeat("x", 97))
	}
	return snap
}

// compare runs what the store does and the bare command in turns, so that both see the
// same machine, and reports the store's time and how often the bare one goes into it.
func compare(b *testing.B, unit string, ours, bare func(i int) error) {
	var total, yardstick time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		err := bare(i)
		between := time.Now()
		if err == nil {
			err = ours(i)
		}
		end := time.Now()
		if err != nil {
			b.Fatal(err)
		}
		yardstick += between.Sub(start)
		total += end.Sub(between)
	}
	b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(float64(total)/float64(yardstick), unit)
}

func BenchmarkSave(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	for name, size := range sizes {
		b.Run(name, func(b *testing.B) {
			id := newID()
			s := newStore(rdb, id)
			require.NoError(b, s.Save(b.Context(), sized(id, 0, size)))
			value := stored(b, rdb, id)
			compare(b, "x_SET",
				func(i int) error { return s.Save(b.Context(), sized(id, i+1, size)) },
				func(int) error { return rdb.Set(b.Context(), "bench:"+name, value, 0).Err() })
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	for name, size := range sizes {
		b.Run(name, func(b *testing.B) {
			id := newID()
			s := newStore(rdb, id)
			require.NoError(b, s.Save(b.Context(), sized(id, 1, size)))
			compare(b, "x_GET",
				func(int) error { _, err := s.Load(b.Context(), id); return err },
				func(int) error { return rdb.Get(b.Context(), rediskey.Snapshot(id)).Err() })
		})
	}
}

// BenchmarkGuard is the script alone against SET; "escaped" is a head that only cjson reads.
func BenchmarkGuard(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	for name, size := range sizes {
		for _, tenant := range []string{"plain", `escaped"`} {
			b.Run(name+"/"+strings.TrimSuffix(tenant, `"`), func(b *testing.B) {
				id := newID().InTenant(tenant)
				s := newStore(rdb, id)
				require.NoError(b, s.Save(b.Context(), sized(id, 1, size)))
				key, value := rediskey.Snapshot(id), stored(b, rdb, id)
				compare(b, "x_SET",
					func(int) error { save(b, rdb, key, 1, value); return nil },
					func(int) error { return rdb.Set(b.Context(), "bench:"+name, value, 0).Err() })
			})
		}
	}
}

var _ es.SnapshotStore[cart] = (*snapshot.Store[cart])(nil)
