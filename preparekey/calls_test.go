package preparekey_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/preparekey"
)

// behind is reservations reached through a proxy, whose scripts the server knows.
func behind(t *testing.T, retries int) (*preparekey.Keys[string], *redistest.Proxy) {
	t.Helper()
	server := redistest.Shared(t)
	proxy := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr, o.MaxRetries = proxy.Addr, retries
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	keys, _ := open[string](t, rdb)
	isTrue(t)(keys.Prepare(t.Context(), "warm", "a", 0))
	isTrue(t)(keys.ReprepareFrom(t.Context(), "warm", "a", "b", 0))
	isTrue(t)(keys.RollbackFrom(t.Context(), "warm", "b"))
	_, err := keys.Get(t.Context(), "warm")
	require.ErrorIs(t, err, es.ErrNotFound)
	return keys, proxy
}

func TestPREP09_ALostReplyIsTrueForTheSameCall(t *testing.T) {
	t.Parallel()
	keys, proxy := behind(t, 3)
	ctx := t.Context()
	lost := func(call func() (bool, error)) {
		t.Helper()
		before := proxy.Count("EVALSHA")
		proxy.DropReply("EVALSHA")
		isTrue(t)(call())
		require.Zero(t, proxy.Pending())
		require.Equal(t, before+2, proxy.Count("EVALSHA"), "sent twice")
	}
	lost(func() (bool, error) { return keys.Prepare(ctx, "k", "a", 0) })
	isFalse(t)(keys.Prepare(ctx, "k", "b", 0))
	isFalse(t)(keys.Prepare(ctx, "k", "a", 0))
	lost(func() (bool, error) { return keys.Reprepare(ctx, "k", "b", time.Hour) })
	lost(func() (bool, error) { return keys.ReprepareFrom(ctx, "k", "b", "c", 0) })
	lost(func() (bool, error) { return keys.RollbackFrom(ctx, "k", "c") })
	lost(func() (bool, error) { return keys.Prepare(ctx, "k", "d", time.Hour) })
	lost(func() (bool, error) { return keys.Rollback(ctx, "k") })
	isFalse(t)(keys.Rollback(ctx, "k"))
	isTrue(t)(keys.Prepare(ctx, "old", "a", 0))
	proxy.DropReply("EVALSHA") // of the first step
	isTrue(t)(preparekey.Move(ctx, keys, "old", "a", "new", "b", 0))
	isTrue(t)(keys.Prepare(ctx, "old", "a", 0))
}

func TestPREP09_MoveIsTrueWhereTheReplyOfItsRollbackIsLost(t *testing.T) {
	t.Parallel()
	keys, proxy := behind(t, 3)
	ctx := t.Context()
	isTrue(t)(keys.Prepare(ctx, "old", "a", 0))
	proxy.DropReply("EVALSHA " + lua.RollbackKey.Hash())
	isTrue(t)(preparekey.Move(ctx, keys, "old", "a", "new", "b", 0))
	require.Zero(t, proxy.Pending())
	got, err := keys.Get(ctx, "new")
	require.NoError(t, err)
	require.Equal(t, "b", got, "neither key was lost")
}

func TestALostReplyThatIsNotSentAgainIsUncertain(t *testing.T) {
	t.Parallel()
	keys, proxy := behind(t, -1)
	ctx := t.Context()
	proxy.DropReply("EVALSHA")
	done, err := keys.Prepare(ctx, "k", "a", 0)
	require.False(t, done)
	require.ErrorIs(t, err, es.ErrUncertain)
	var at *es.Error
	require.ErrorAs(t, err, &at)
	isFalse(t)(keys.Prepare(ctx, "k", "a", 0)) // a new call
	got, err := keys.GetValue(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, es.Prepared[string]{Value: "a"}, got, "GetValue tells")

	isTrue(t)(keys.Prepare(ctx, "old", "a", 0))
	proxy.DropReply("EVALSHA " + lua.RollbackKey.Hash())
	done, err = preparekey.Move(ctx, keys, "old", "a", "new", "b", 0)
	require.False(t, done)
	require.ErrorIs(t, err, es.ErrUncertain)
	moved, err := keys.Get(ctx, "new")
	require.NoError(t, err)
	require.Equal(t, "b", moved, "the new key is not given up while the old one may be free")
}

func TestPREP04_NoTimeOfTheCallerIsSent(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	keys, name := open[string](t, rdb)
	sent := &recorder{}
	rdb.AddHook(sent)
	isTrue(t)(keys.Prepare(t.Context(), "k", "a", 90*time.Minute+time.Nanosecond))
	isTrue(t)(keys.ReprepareFrom(t.Context(), "k", "a", "b", 0))
	require.Len(t, sent.args, 2)
	require.Equal(t, []any{rediskey.Prepare(name, "k"), []byte(`"a"`), "5400001"}, sent.args[0][3:6], "a ttl is rounded up")
	require.Len(t, sent.args[0], 7, "and the token")
	require.Equal(t, []any{rediskey.Prepare(name, "k"), []byte(`"b"`), ""}, sent.args[1][3:6])
	require.NotEqual(t, sent.args[0][6], sent.args[1][6], "each call has its own")
	require.Equal(t, []byte(`"a"`), sent.args[1][7])
}

type recorder struct{ args [][]any }

func (*recorder) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") {
			r.args = append(r.args, cmd.Args())
		}
		return err
	}
}

func TestValuesAndNamesOverTheirLimitsAreNotSent(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	keys, _ := open[es.Raw](t, rdb)
	big := es.Raw(`"` + strings.Repeat("x", preparekey.MaxValueBytes) + `"`)
	_, err := keys.Prepare(t.Context(), "k", big, 0)
	require.ErrorIs(t, err, es.ErrTooLarge)
	_, err = keys.RollbackFrom(t.Context(), "k", big)
	require.ErrorIs(t, err, es.ErrTooLarge)
	for _, name := range []string{"", "\xff", strings.Repeat("n", es.MaxIDBytes+1)} {
		keys := preparekey.New[string](rdb, codec, name)
		_, err := keys.Prepare(t.Context(), "k", "v", 0)
		require.ErrorIs(t, err, es.ErrInvalid)
		_, err = keys.Sweep(t.Context())
		require.ErrorIs(t, err, es.ErrInvalid)
		require.Less(t, len(err.Error()), 300, "an over-long name stays out of the log")
	}
}

func TestErrorsNameTheKey(t *testing.T) {
	t.Parallel()
	keys := preparekey.New[string](redistest.Shared(t).Client(t), codec, "user\nname")
	_, err := keys.Get(t.Context(), "no\nbody")
	require.EqualError(t, err, fmt.Sprintf("get %q of %q: not found", "no\nbody", "user\nname"))
}
