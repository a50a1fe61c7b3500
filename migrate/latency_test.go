package migrate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/migrate"
)

// BenchmarkOthersDuringAudit says how long the slowest hundredth of somebody else's PINGs
// takes while an audit runs at its default rate, as a multiple of without one.
func BenchmarkOthersDuringAudit(b *testing.B) {
	rdb, _ := benchStore(b)
	own := redis.NewClient(rdb.Options())
	defer own.Close() //nolint:errcheck // the benchmark's end
	pings := func(enough func(n int) bool) time.Duration {
		var took []time.Duration
		for n := 0; !enough(n); n++ {
			start := time.Now()
			require.NoError(b, own.Ping(b.Context()).Err())
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	var idle, busy time.Duration
	for b.Loop() {
		idle += pings(func(n int) bool { return n == 5000 })
		done := make(chan error, 1)
		go func() {
			_, err := migrate.Audit{}.Run(b.Context(), rdb, nil)
			done <- err
		}()
		busy += pings(func(n int) bool {
			select {
			case err := <-done:
				require.NoError(b, err)
				return n > 0
			default:
				return false
			}
		})
	}
	b.ReportMetric(float64(busy)/float64(idle), "p99-of-idle")
	b.ReportMetric(float64(idle.Microseconds())/float64(b.N), "idle-p99-µs")
}
