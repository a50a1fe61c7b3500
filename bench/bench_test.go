package bench_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

// contender publishes n messages of 400 bytes, and returns when all are handled and
// acknowledged.
type contender struct {
	name  string
	round func(n int) error
}

func contenders(t testing.TB) (ours contender, others []contender) {
	server := redistest.Shared(t)
	client := func() *redis.Client { // of each its own: blocked reads keep connections
		o := server.Options()
		o.PoolSize = 4 * parallel
		rdb := redis.NewClient(o)
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	return headwater(t, client()), []contender{bare(t, client()), watermillStream(t, client()), asynqQueue(t, client())}
}

// BenchmarkThroughput takes turns: each iteration is a round of everyone, on one server.
// The metric x-NAME is how many times the rate of NAME ours is.
func BenchmarkThroughput(b *testing.B) {
	const round = 5_000
	ours, others := contenders(b)
	spent := map[string]time.Duration{}
	for b.Loop() {
		for _, c := range append([]contender{ours}, others...) {
			start := time.Now()
			require.NoError(b, c.round(round), c.name)
			spent[c.name] += time.Since(start)
		}
	}
	for _, c := range others {
		b.ReportMetric(spent[c.name].Seconds()/spent[ours.name].Seconds(), "x-"+c.name)
	}
	b.ReportMetric(float64(b.N*round)/spent[ours.name].Seconds(), "msg/s")
	b.ReportMetric(0, "ns/op")
}

func TestEveryContenderDeliversARound(t *testing.T) {
	ours, others := contenders(t)
	for _, c := range append(others, ours) {
		for range 2 {
			require.NoError(t, c.round(200), c.name)
		}
	}
}
