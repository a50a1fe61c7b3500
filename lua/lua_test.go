package lua_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
)

func read(t *testing.T, rdb redis.Scripter, key string) any {
	t.Helper()
	reply, err := lua.ReadKey.Run(t.Context(), rdb, []string{key})
	require.NoError(t, err)
	return reply
}

func TestSCR01_AScriptIsSentByItsHashAndByItsTextOnceWhereItIsUnknown(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	p := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr = p.Addr
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	for flush := range 3 {
		for range 5 {
			require.Equal(t, []any{"free"}, read(t, rdb, "k"))
		}
		require.Equal(t, 1+flush, p.Count("EVAL"))
		require.Equal(t, 5*(1+flush), p.Count("EVALSHA "+lua.ReadKey.Hash()))
		require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
	}
}

func TestSCR02_AScriptThatIsUnknownInAPipelineIsSentAgain(t *testing.T) {
	t.Parallel()
	ap, err := redistest.Standalone(t).Client(t).AutoPipeline()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ap.Close() })
	done := make(chan any)
	for i := range 100 {
		go func() {
			reply, err := lua.ReadKey.Run(t.Context(), ap, []string{fmt.Sprint(i)})
			if err != nil {
				reply = err
			}
			done <- reply
		}()
	}
	for range 100 {
		require.Equal(t, []any{"free"}, <-done)
	}
}

// An error of the script itself is not answered by running it again.
func TestAScriptsErrorIsPassedOn(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	p := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr = p.Addr
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	read(t, rdb, "k") // it is known now
	require.NoError(t, rdb.Set(t.Context(), "k", "no hash", 0).Err())
	_, err := lua.ReadKey.Run(t.Context(), rdb, []string{"k"})
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Equal(t, 1, p.Count("EVAL"))
}
