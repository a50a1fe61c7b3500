package redistest_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

func TestSharedIsOneServer(t *testing.T) {
	t.Parallel()
	a, b := redistest.Shared(t), redistest.Shared(t)
	require.Same(t, a, b)
	if os.Getenv(holdVariable) != "" {
		fmt.Println(a.Addr)
		select {} // until killed by TestServersEndWithTheTestProcess
	}
	require.NoError(t, a.Client(t).Set(t.Context(), "redistest.shared", "1", 0).Err())
	require.Equal(t, "1", b.Client(t).Get(t.Context(), "redistest.shared").Val())
}

func TestStandaloneTakesConfiguration(t *testing.T) {
	t.Parallel()
	limit := cmp.Or(os.Getenv("REDISTEST_MAXMEMORY"), "5mb") // see TestWrongConfigurationFailsWithTheServersWords
	s := redistest.Standalone(t, "maxmemory "+limit, "requirepass secret")
	o := s.Options()
	o.Password = "secret"
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	require.Equal(t, map[string]string{"maxmemory": "5242880"}, c.ConfigGet(t.Context(), "maxmemory").Val())
	require.ErrorContains(t, s.Client(t).Ping(t.Context()).Err(), "NOAUTH")
}

func TestServerAllowsDebugCommands(t *testing.T) {
	t.Parallel()
	require.NoError(t, redistest.Standalone(t).Client(t).Do(t.Context(), "DEBUG", "SLEEP", "0").Err())
}

func TestRestartLosesDataUnlessItIsPersisted(t *testing.T) {
	t.Parallel()
	for name, persistent := range map[string]bool{"in memory": false, "append-only file": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var config []string
			if persistent {
				config = []string{"appendonly yes", "appendfsync always"}
			}
			s := redistest.Standalone(t, config...)
			c := s.Client(t)
			require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
			s.Restart(t)
			kept, err := c.Exists(t.Context(), "k").Result()
			require.NoError(t, err)
			require.Equal(t, persistent, kept == 1)
		})
	}
}

func TestKilledServerIsGoneUntilStarted(t *testing.T) {
	t.Parallel()
	s := redistest.Standalone(t)
	c := s.Client(t)
	s.Kill(t)
	s.Kill(t) // once more changes nothing
	require.ErrorContains(t, c.Ping(t.Context()).Err(), "connection refused")
	s.Start(t)
	require.NoError(t, c.Ping(t.Context()).Err())
}

func TestPausedServerIsSilentUntilResumed(t *testing.T) {
	t.Parallel()
	s := redistest.Standalone(t)
	o := s.Options()
	o.ContextTimeoutEnabled = true
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Ping(t.Context()).Err())
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Ping(ctx).Err(), context.DeadlineExceeded)
	s.Resume(t)
	require.NoError(t, c.Ping(t.Context()).Err())
	s.Pause(t) // its cleanup must end a frozen process too
}
