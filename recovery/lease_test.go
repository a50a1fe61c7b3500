package recovery_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestLeaseHasOneHolderUntilItEnds(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		var a, b es.Lease = recovery.NewLease(rdb, t.Name()), recovery.NewLease(rdb, t.Name())
		hold := func(l es.Lease, d time.Duration) bool {
			held, err := l.Hold(t.Context(), d)
			require.NoError(t, err)
			return held
		}
		require.True(t, hold(a, time.Minute))
		require.True(t, hold(a, time.Minute), "taken on")
		require.False(t, hold(b, time.Minute))
		require.True(t, hold(recovery.NewLease(rdb, t.Name()+" of others"), time.Minute))
		require.True(t, hold(a, time.Millisecond), "given back")
		require.Eventually(t, func() bool { return hold(b, time.Minute) }, time.Minute, 5*time.Millisecond)
		require.False(t, hold(a, time.Minute))
	})
}
