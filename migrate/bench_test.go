package migrate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/migrate"
)

// A store of era C: 5,000 aggregates with 10 commits of about 450 bytes each.
const (
	benchAggregates = 5000
	benchCommits    = 10
)

func benchStore(b *testing.B) (rdb *redis.Client, keys []string) {
	b.Helper()
	rdb = redistest.Standalone(b).Client(b)
	t := es.AggregateType{Context: "order-service", Name: "order"}
	for i := range benchAggregates {
		id := t.ID(fmt.Sprintf("order-%d", i))
		require.NoError(b, fixture.Write(b.Context(), rdb, legacy.C, id, benchCommits))
		require.NoError(b, rdb.Del(b.Context(), fixture.KeysOf(legacy.C, id).Snapshot).Err())
		keys = append(keys, fixture.KeysOf(legacy.C, id).Events)
	}
	return rdb, keys
}

// ratio runs both in turn and reports bare time / whole time: 1 = as fast.
func ratio(b *testing.B, bare, whole func()) {
	b.Helper()
	var bareTime, wholeTime time.Duration
	for b.Loop() {
		start := time.Now()
		bare()
		between := time.Now()
		whole()
		bareTime += between.Sub(start)
		wholeTime += time.Since(between)
	}
	b.ReportMetric(float64(bareTime)/float64(wholeTime), "of-bare")
	b.ReportMetric(float64(benchAggregates*benchCommits)*float64(b.N)/wholeTime.Seconds(), "events/s")
	b.ReportMetric(float64(benchAggregates)*float64(b.N)/wholeTime.Seconds(), "keys/s")
}

var unhurried = migrate.Pace{Rate: 1e9}

// The bare run knows names, types and cardinalities; so does an audit of keys only. A
// whole audit reads and decodes every document besides.
func BenchmarkAudit(b *testing.B) {
	rdb, _ := benchStore(b)
	bare := func() {
		for cursor := uint64(0); ; {
			keys, next, err := rdb.Scan(b.Context(), cursor, "", 1000).Result()
			require.NoError(b, err)
			_, err = rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for _, key := range keys {
					p.Type(b.Context(), key)
					p.ZCard(b.Context(), key)
				}
				return nil
			})
			if err != nil {
				require.ErrorContains(b, err, "WRONGTYPE") // the set of requests
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
	// The least that reads every document.
	reading := func() {
		for cursor := uint64(0); ; {
			keys, next, err := rdb.Scan(b.Context(), cursor, "", 128).Result()
			require.NoError(b, err)
			_, err = rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for _, key := range keys {
					p.Type(b.Context(), key)
					p.ZRangeWithScores(b.Context(), key, 0, -1)
				}
				return nil
			})
			if err != nil {
				require.ErrorContains(b, err, "WRONGTYPE")
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
	audit := func(a migrate.Audit) func() {
		return func() {
			report, err := a.Run(b.Context(), rdb, nil)
			require.NoError(b, err)
			require.Equal(b, int64(benchAggregates+1), report.Legacy())
		}
	}
	b.Run("keys", func(b *testing.B) { ratio(b, bare, audit(migrate.Audit{Pace: unhurried, KeysOnly: true})) })
	b.Run("whole", func(b *testing.B) { ratio(b, bare, audit(migrate.Audit{Pace: unhurried})) })
	b.Run("whole-against-reading", func(b *testing.B) { ratio(b, reading, audit(migrate.Audit{Pace: unhurried})) })
}

// The bare run copies members and scores, and neither compares nor rebuilds anything.
func BenchmarkCopy(b *testing.B) {
	rdb, keys := benchStore(b)
	target := redistest.Standalone(b).Client(b)
	f := file(b)
	report, err := migrate.Audit{Pace: unhurried}.Run(b.Context(), rdb, f)
	require.NoError(b, err)
	require.Equal(b, migrate.Migratable, report.Outcome())
	bare := func() {
		require.NoError(b, target.FlushAll(b.Context()).Err())
		for from := 0; from < len(keys); from += 64 {
			page := keys[from:min(from+64, len(keys))]
			read := make([]*redis.ZSliceCmd, len(page))
			_, err := rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for i, key := range page {
					read[i] = p.ZRangeWithScores(b.Context(), key, 0, -1)
				}
				return nil
			})
			require.NoError(b, err)
			_, err = target.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for i, key := range page {
					p.ZAdd(b.Context(), "copy:"+key, read[i].Val()...)
				}
				return nil
			})
			require.NoError(b, err)
		}
	}
	ratio(b, bare, func() {
		require.NoError(b, target.FlushAll(b.Context()).Err())
		r, err := migrate.Copy{Pace: unhurried}.Run(b.Context(), rdb, target, f)
		require.NoError(b, err)
		require.Equal(b, int64(benchAggregates*benchCommits), r.Events)
	})
}
