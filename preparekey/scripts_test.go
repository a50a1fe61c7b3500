package preparekey_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
)

// frozen is the scripts with a clock that stands at a time in milliseconds.
type frozen struct {
	t   *testing.T
	rdb redis.UniversalClient
	key string
}

func (f frozen) run(script string, now int64, args ...any) any {
	f.t.Helper()
	data, err := os.ReadFile("../lua/" + script + ".lua")
	require.NoError(f.t, err)
	time := fmt.Sprintf("{'%d', '%d'}", now/1000, now%1000*1000+999)
	text := strings.Replace(string(data), "redis.call('TIME')", time, 1)
	require.NotEqual(f.t, string(data), text)
	answer, err := f.rdb.Eval(f.t.Context(), text, []string{f.key, f.key + ":rolled"}, args...).Result()
	require.NoError(f.t, err)
	return answer
}

func newFrozen(t *testing.T) frozen {
	_, name := open[string](t, redistest.Shared(t).Client(t))
	return frozen{t, redistest.Shared(t).Client(t), rediskey.Prepare(name, "k")}
}

func TestPREP03_EveryOperationAgreesOnTheMillisecond(t *testing.T) {
	t.Parallel()
	const end = 1_700_000_000_000
	for _, c := range []struct {
		now  int64
		held bool
	}{{end - 1, true}, {end, false}, {end + 1, false}} {
		f := newFrozen(t)
		for _, operation := range []struct {
			script      string
			args        []any
			held, ended any
		}{
			{"read_key", nil, []any{"held", "a", fmt.Sprint(end)}, []any{"ended", "a", fmt.Sprint(end)}},
			{"prepare_key", []any{"b", "", "t"}, "held", "done"},
			{"reprepare_key", []any{"b", "", "t"}, "done", "free"},
			{"reprepare_key", []any{"b", "", "t", "a"}, "done", "free"},
			{"rollback_key", []any{"t1"}, "done", "free"},
			{"rollback_key", []any{"t2", "a"}, "done", "free"},
		} {
			plant(t, f.rdb, f.key, "a", fmt.Sprint(end))
			want := operation.held
			if !c.held {
				want = operation.ended
			}
			require.Equal(t, want, f.run(operation.script, c.now, operation.args...), "%s at %+d", operation.script, c.now-end)
		}
	}
}

func TestPREP04_EndsAreCountedFromTheServersClock(t *testing.T) {
	t.Parallel()
	f := newFrozen(t)
	const serverNow = 1_600_000_000_000 // far behind the caller's
	require.Equal(t, "done", f.run("prepare_key", serverNow, "a", "300000", "t"))
	require.Equal(t, map[string]string{"value": "a", "ttlAt": fmt.Sprint(serverNow + 300_000)}, fields(t, f.rdb, f.key))
	require.Equal(t, "held", f.run("prepare_key", serverNow+299_999, "b", "", "t2"), "whatever the caller's clock says")
	require.Equal(t, "done", f.run("reprepare_key", serverNow+1000, "b", "5", "t3"))
	require.Equal(t, fmt.Sprint(serverNow+1005), fields(t, f.rdb, f.key)["ttlAt"])
}

func TestPREP01_ForeverIsAnyLaterEnd(t *testing.T) {
	t.Parallel()
	f := newFrozen(t)
	for _, ttlAt := range []string{forever, "148204944000001", "9223372036854775807", "+148204944000000"} {
		plant(t, f.rdb, f.key, "a", ttlAt)
		require.Equal(t, []any{"held", "a", ttlAt}, f.run("read_key", 148204943999999), "text, not a number of Lua's")
		require.Equal(t, "held", f.run("prepare_key", 148204943999999, "b", "", "t"))
		require.Equal(t, "kept", f.run("sweep_key", 1_700_000_000_000, "0"))
		require.Equal(t, "done", f.run("reprepare_key", 1_700_000_000_000, "b", "", "t", "a"))
		require.Equal(t, map[string]string{"value": "b", "ttlAt": forever}, fields(t, f.rdb, f.key))
	}
}

func TestPREP09_TheTokenCountsOnlyForWhatItsCallWrote(t *testing.T) {
	t.Parallel()
	f := newFrozen(t)
	const now = 1_700_000_000_000
	prepare := func(token string) any { return f.run("prepare_key", now, "a", "", token) }
	require.Equal(t, "done", prepare("one"))
	require.Equal(t, "done", prepare("one"), "the same call, sent again")
	require.Equal(t, "held", prepare("two"), "another call, though with the same value")

	require.NoError(t, f.rdb.HSet(t.Context(), f.key, "value", "k", "ttlAt", forever).Err())
	require.Equal(t, "held", prepare("one"), "a Kotlin node gave it another value, and left the token")
	require.NoError(t, f.rdb.HSet(t.Context(), f.key, "value", "a", "ttlAt", "1800000000000").Err())
	require.Equal(t, "held", prepare("one"), "a Kotlin node gave it another end")

	require.Equal(t, "done", f.run("reprepare_key", now, "c", "", "three", "a"))
	require.Equal(t, "done", f.run("reprepare_key", now, "c", "", "three", "a"), "the old value is gone, and that is this call's doing")
	require.Equal(t, "other", f.run("reprepare_key", now, "c", "", "four", "a"))
	require.Equal(t, "held", prepare("three"), "the token of another value")
}

func TestPREP09_ARollbackSentAgainLeavesTheNextHolderAlone(t *testing.T) {
	t.Parallel()
	f := newFrozen(t)
	const now = 1_700_000_000_000
	require.Equal(t, "done", f.run("prepare_key", now, "same", "", "t1"))
	require.Equal(t, "done", f.run("rollback_key", now, "t2", "same"))
	require.Equal(t, "done", f.run("prepare_key", now, "same", "", "t3"))
	require.Equal(t, "done", f.run("rollback_key", now, "t2", "same"), "it is true for the caller")
	require.Equal(t, map[string]string{"value": "same", "ttlAt": forever}, fields(t, f.rdb, f.key), "and the next holder keeps the key")
	left, err := f.rdb.PTTL(t.Context(), f.key+":rolled").Result()
	require.NoError(t, err)
	require.Positive(t, left, "the token goes by itself")
	require.Equal(t, "other", f.run("rollback_key", now, "t4", "x"))
	require.Equal(t, "done", f.run("rollback_key", now, "t4"))
}

func TestReservationsHaveNoRedisExpiry(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	_, name := open[string](t, rdb)
	key := rediskey.Prepare(name, "k")
	for _, call := range []func() (any, error){
		func() (any, error) { return lua.PrepareKey.Run(t.Context(), rdb, []string{key}, "a", "60000", "t1") },
		func() (any, error) { return lua.ReprepareKey.Run(t.Context(), rdb, []string{key}, "a", "60000", "t2") },
	} {
		answer, err := call()
		require.NoError(t, err)
		require.Equal(t, "done", answer)
		left, err := rdb.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.EqualValues(t, -1, left, "a Kotlin node that extends it would keep an expiry, and lose it")
	}
}

func TestSweepKeyRemovesOnlyWhatEndedLongAgo(t *testing.T) {
	t.Parallel()
	f := newFrozen(t)
	const end = 1_700_000_000_000
	plant(t, f.rdb, f.key, "a", fmt.Sprint(end))
	require.Equal(t, "kept", f.run("sweep_key", end+599_999, "600000"))
	require.Equal(t, "removed", f.run("sweep_key", end+600_000, "600000"))
	require.Equal(t, "kept", f.run("sweep_key", end+600_001, "600000"), "gone already")
	plant(t, f.rdb, f.key, "a", "-5")
	require.Equal(t, "removed", f.run("sweep_key", end, "600000"))
	plant(t, f.rdb, f.key, "a", "soon")
	require.Equal(t, "kept", f.run("sweep_key", end, "600000"), "not ours to judge")
}
