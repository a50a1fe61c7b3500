package preparekey_test

import (
	"strconv"
	"testing"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/preparekey"
)

// One caller; what is compared is the round trip of an HSET.
func BenchmarkPrepare(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	keys := preparekey.New[string](rdb, codec, b.Name())
	b.Run("prepare", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := keys.Prepare(b.Context(), strconv.Itoa(i), "user", 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hset", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := rdb.HSet(b.Context(), "bench:"+strconv.Itoa(i), "value", "user", "ttlAt", "1", "by", "x").Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
