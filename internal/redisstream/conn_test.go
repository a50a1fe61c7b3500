package redisstream_test

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// impatient turns every blocked read into one that waits for a millisecond, as servers
// and proxies do that cannot block.
type impatient struct{ net.Conn }

func (c impatient) Write(b []byte) (int, error) {
	_, err := c.Conn.Write(bytes.ReplaceAll(b, []byte("$5\r\nblock\r\n$4\r\n2000\r\n"), []byte("$5\r\nblock\r\n$1\r\n1\r\n")))
	return len(b), err
}

func TestCONN02_CONN14_AServerThatCannotBlockIsNotAskedInALoop(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	p := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr = p.Addr
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return impatient{conn}, err
	}
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	topic := freshTopic()
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	publish(t, rdb, topic, "a|1")
	eventually(t, "it is handled", func() bool { return seen.count("a|1") == 1 })
	reads := p.Count("XREADGROUP")
	never(t, "it reads in a loop", 2*time.Second, func() bool { return p.Count("XREADGROUP") > reads+5 })
	require.Greater(t, p.Count("XREADGROUP"), reads+2, "it does read")
	require.Less(t, r.end(t), time.Second)
}

// CONN-01: without the right to use CLIENT, reads are short.
func TestCONN01_AStopWithoutTheRightToUnblockIsQuickToo(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-client").Err())
	o := server.Options()
	o.Username, o.Password = "app", "secret"
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	topic := freshTopic()
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	publish(t, rdb, topic, "a|1")
	drained(t, rdb, topic)
	require.Less(t, r.end(t), time.Second)
}

// DLQ-08: what is replayed reaches the group that failed, and says so.
func TestDLQ08_AReplayedLetterReachesItsGroup(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		var seen calls
		deliveries := make(chan es.Delivery, 10)
		r := start(t, rdb, config(topic), func(ctx context.Context, text string) error {
			d, _ := es.DeliveryOf(ctx)
			deliveries <- d
			if seen.add(text) < 3 {
				return es.Permanent(errFails)
			}
			return nil
		})
		publish(t, rdb, topic, "a|1")
		for replays := range 2 {
			var all []recovery.Letter
			eventually(t, "it is buried", func() bool { all = letters(t, rdb, topic); return len(all) == 1 })
			require.Equal(t, replays, all[0].Replays)
			_, err := recovery.NewDeadLetters(rdb).Replay(t.Context(), topic, all[0].ID)
			require.NoError(t, err)
		}
		eventually(t, "it is handled", func() bool { return seen.count("a|1") == 3 })
		eventually(t, "it is acknowledged", func() bool { return pending(t, rdb, rediskey.Retry(topic, "g")) == 0 })
		r.end(t)
		require.Empty(t, letters(t, rdb, topic))
		require.False(t, (<-deliveries).Replayed)
		require.True(t, (<-deliveries).Replayed)
		require.EqualValues(t, 1, rdb.XLen(t.Context(), topic).Val())
	})
}
