package redistest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

// through is a client that neither retries nor waits long, behind a proxy, and the
// server behind that.
func through(t *testing.T) (*redis.Client, *redistest.Proxy, *redis.Client) {
	t.Helper()
	s := redistest.Standalone(t)
	p := redistest.NewProxy(t, s.Addr)
	o := s.Options()
	o.Addr, o.MaxRetries, o.ReadTimeout = p.Addr, -1, 300*time.Millisecond
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c, p, s.Client(t)
}

func TestProxyDropsOneReplyOfAnExecutedCommand(t *testing.T) {
	t.Parallel()
	c, p, server := through(t)
	p.DropReply("incr")
	require.ErrorIs(t, c.Incr(t.Context(), "n").Err(), io.EOF)
	require.Zero(t, p.Pending())
	require.Equal(t, "1", server.Get(t.Context(), "n").Val(), "it was carried out")
	require.EqualValues(t, 2, c.Incr(t.Context(), "n").Val(), "the rule is used up")
}

func TestProxyDropsTheRightReplyOfAPipeline(t *testing.T) {
	t.Parallel()
	_, p, server := through(t)
	p.DropReply("INCR")
	conn, err := net.Dial("tcp", p.Addr) // a client would give all commands one error
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "SET s 1\r\nINCR n\r\nSET s 2\r\n")
	require.NoError(t, err)
	replies, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", string(replies))
	require.Equal(t, "1", server.Get(t.Context(), "n").Val())
}

func TestProxySwallowsOneReply(t *testing.T) {
	t.Parallel()
	c, p, server := through(t)
	p.SwallowReply("INCR")
	err := c.Incr(t.Context(), "n").Err()
	var timeout net.Error
	require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
	require.Equal(t, "1", server.Get(t.Context(), "n").Val())
	require.EqualValues(t, 2, c.Incr(t.Context(), "n").Val(), "on a connection of its own")
}

func TestProxyTellsScriptsApartByHash(t *testing.T) {
	t.Parallel()
	c, p, server := through(t)
	one, two := redis.NewScript("return redis.call('INCR', KEYS[1])"), redis.NewScript("return redis.call('DECR', KEYS[1])")
	require.NoError(t, one.Load(t.Context(), server).Err())
	require.NoError(t, two.Load(t.Context(), server).Err())
	p.DropReply("EVALSHA " + two.Hash())
	require.EqualValues(t, 1, one.EvalSha(t.Context(), c, []string{"n"}).Val())
	require.Error(t, two.EvalSha(t.Context(), c, []string{"n"}).Err())
	require.Equal(t, "0", server.Get(t.Context(), "n").Val())
	require.Equal(t, 2, p.Count("evalsha"))
	require.Equal(t, 1, p.Count("evalsha "+one.Hash()))
}

func TestProxyCutsAndHeals(t *testing.T) {
	t.Parallel()
	c, p, _ := through(t)
	require.NoError(t, c.Ping(t.Context()).Err())
	p.Cut()
	require.Error(t, c.Ping(t.Context()).Err())
	require.Error(t, c.Ping(t.Context()).Err())
	p.Heal()
	require.NoError(t, c.Ping(t.Context()).Err())
}

func TestProxyDelays(t *testing.T) {
	t.Parallel()
	c, p, _ := through(t)
	require.NoError(t, c.Ping(t.Context()).Err())
	p.Delay(50 * time.Millisecond)
	start := time.Now()
	require.NoError(t, c.Ping(t.Context()).Err())
	require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
	p.Delay(time.Hour) // must not hold the test's end up
	require.Error(t, c.Ping(t.Context()).Err())
}

func TestProxyPassesEverythingElse(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Standalone(t)
			p := redistest.NewProxy(t, s.Addr)
			o := s.Options()
			o.Addr, o.Protocol = p.Addr, protocol
			c := redis.NewClient(o)
			t.Cleanup(func() { _ = c.Close() })
			ctx := t.Context()

			big := strings.Repeat("\r\nüx", 1<<20)
			require.NoError(t, c.Set(ctx, "big", big, 0).Err())
			require.Equal(t, big, c.Get(ctx, "big").Val())
			require.ErrorIs(t, c.Get(ctx, "none").Err(), redis.Nil)
			require.ErrorContains(t, c.Incr(ctx, "big").Err(), "not an integer")
			require.NoError(t, c.HSet(ctx, "h", "a", "1", "b", "").Err())
			require.Equal(t, map[string]string{"a": "1", "b": ""}, c.HGetAll(ctx, "h").Val())
			require.NoError(t, c.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "m"}).Err())
			require.Equal(t, []redis.Z{{Score: 1.5, Member: "m"}}, c.ZRangeWithScores(ctx, "z", 0, -1).Val())
			_, err := c.TxPipelined(ctx, func(tx redis.Pipeliner) error { return tx.Incr(ctx, "n").Err() })
			require.NoError(t, err)

			sub := c.Subscribe(ctx, "channel", "other")
			t.Cleanup(func() { _ = sub.Close() })
			for range 2 {
				_, err = sub.Receive(ctx)
				require.NoError(t, err)
			}
			require.NoError(t, c.Publish(ctx, "other", "hello").Err())
			m, err := sub.ReceiveMessage(ctx)
			require.NoError(t, err)
			require.Equal(t, "hello", m.Payload)
		})
	}
}

func TestProxyClusterSeesEveryCommand(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	r, proxies := redistest.ProxyCluster(t, c)
	const key = "redistest.proxycluster"
	owner := c.Owner(t, c.Slot(t, key))
	require.NoError(t, r.Set(t.Context(), key, "v", 0).Err())
	for i, p := range proxies {
		want := 0
		if c.Nodes[i] == owner {
			want = 1
		}
		require.Equal(t, want, p.Count("SET"))
		p.Cut()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.Error(t, r.Get(ctx, key).Err(), "no way around the proxies")
}
