package replay_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/examples/order-service/replay"
	"github.com/headwater-go/headwater/examples/order-service/shop"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/wire"
)

// BenchmarkReplay holds the whole replay, with its loads and decisions, against bare
// appends of as many commits at the same concurrency, through the same client.
func BenchmarkReplay(b *testing.B) {
	const workers = 64
	entries, err := replay.Log()
	require.NoError(b, err)
	commands := replay.Commands(entries)
	var ours, bare time.Duration
	for b.Loop() {
		b.StopTimer()
		rdb, err := redistest.Standalone(b).Client(b).AutoPipeline()
		require.NoError(b, err)
		b.StartTimer()
		start := time.Now()
		var done atomic.Int64
		tally, err := replay.Run(b.Context(), shop.New(eventstore.New(rdb, wire.JSON(shop.Types()...))).Handle, commands, workers, &done)
		require.NoError(b, err)
		require.Equal(b, len(commands), tally.Applied)
		ours += time.Since(start)
		b.StopTimer()
		bare += bareAppends(b, rdb, len(commands), workers)
		b.StartTimer()
	}
	b.ReportMetric(bare.Seconds()/ours.Seconds(), "x-bare-appends")
	b.ReportMetric(float64(len(commands)*b.N)/ours.Seconds(), "commands/s")
}

// bareAppends sends n appends of new aggregates, of 400 bytes each.
func bareAppends(b *testing.B, rdb redis.Cmdable, n, workers int) time.Duration {
	b.Helper()
	commit := make([]byte, 400)
	var wg sync.WaitGroup
	start := time.Now()
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				k := rediskey.EventKeys(shop.Types()[0].Aggregate.ID("bare-" + time.Duration(i).String()))
				got, err := lua.AppendCommits.Run(b.Context(), rdb, []string{k.Stream, k.Requests, k.IDs, k.Purged}, "1", "", k.Member, "r-1", commit)
				if err != nil || got != "ok" {
					b.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}
