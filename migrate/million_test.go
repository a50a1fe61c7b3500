package migrate_test

import (
	"flag"
	"fmt"
	"runtime/metrics"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/migrate"
)

var events = flag.Int("events", 50_000, "how many events BenchmarkMigration migrates")

// BenchmarkMigration audits, copies and verifies a store of era C with 10 commits for
// each aggregate, and says what memory of the process that takes:
//
//	go test ./migrate -run '^$' -bench Migration -benchtime 1x -events 1000000
func BenchmarkMigration(b *testing.B) {
	rdb := redistest.Standalone(b).Client(b)
	t := es.AggregateType{Context: "order-service", Name: "order"}
	for i := range *events / 10 {
		id := t.ID(fmt.Sprintf("order-%d", i))
		var commits []redis.Z
		var requests []any
		for v := 1; v <= 10; v++ {
			commits = append(commits, redis.Z{Score: float64(v), Member: fixture.Commit(legacy.C, id, v, `{"sku":"A1","qty":2}`)})
			requests = append(requests, fixture.RequestID(id, v))
		}
		require.NoError(b, fixture.Put(b.Context(), rdb, legacy.C, id, commits, requests))
	}
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	var peak uint64
	pace := migrate.Pace{Rate: 1e9, Progress: func(migrate.Progress) {
		metrics.Read(memory)
		peak = max(peak, memory[0].Value.Uint64()-memory[1].Value.Uint64())
	}}
	for b.Loop() {
		f := file(b)
		report, err := migrate.Audit{Pace: pace}.Run(b.Context(), rdb, f)
		require.NoError(b, err)
		require.Equal(b, migrate.Migratable, report.Outcome())
		for _, step := range []func() (migrate.Result, error){
			func() (migrate.Result, error) { return migrate.Copy{Pace: pace}.Run(b.Context(), rdb, rdb, f) },
			func() (migrate.Result, error) { return migrate.Verify{Pace: pace}.Run(b.Context(), rdb, rdb, f) },
			func() (migrate.Result, error) { return migrate.Rollback{Pace: pace}.Run(b.Context(), rdb, rdb, f) },
		} {
			result, err := step()
			require.NoError(b, err)
			require.Equal(b, migrate.Clean, result.Outcome(), "%v", result.ByCode)
			require.Equal(b, int64(*events), result.Events)
		}
	}
	b.ReportMetric(float64(peak>>20), "peak-MiB")
	b.ReportMetric(float64(*events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
