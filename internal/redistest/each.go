package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// Each runs a test on the shared standalone server, the shared Cluster and the shared
// Sentinel set-up, as parallel subtests of these names.
func Each(t *testing.T, run func(t *testing.T, rdb redis.UniversalClient)) {
	t.Helper()
	for name, client := range map[string]func(t testing.TB) redis.UniversalClient{
		"standalone": func(t testing.TB) redis.UniversalClient { return Shared(t).Client(t) },
		"cluster":    func(t testing.TB) redis.UniversalClient { return SharedCluster(t).Client(t) },
		"sentinel":   func(t testing.TB) redis.UniversalClient { return SharedSentinel(t).Client(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, client(t))
		})
	}
}
