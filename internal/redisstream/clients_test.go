package redisstream_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// allOfIt goes through whatever a subscription does with a server, by way of one client:
// reads, retries, buries, recovers, replays, tidies up.
func allOfIt(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	topic := freshTopic()
	group(t, rdb, topic)
	publish(t, rdb, topic, "a|recovered", "a|1", "b|fails", "c|permanent", "undecodable")
	abandon(t, rdb, topic, "dead", 1)
	c := config(topic)
	var log lines
	c.Logger = log.logger()
	var seen calls
	r := start(t, rdb, c, func(ctx context.Context, text string) error {
		first := seen.add(text) == 1
		switch d, _ := es.DeliveryOf(ctx); {
		case d.Recovered != (text == "a|recovered"):
			t.Errorf("%s: %+v", text, d)
		case first && text == "b|fails":
			return errFails
		case first && text == "c|permanent":
			return es.Permanent(errFails)
		}
		return nil
	})
	drained(t, rdb, topic)
	require.Equal(t, 2, seen.count("b|fails"))
	require.Len(t, letters(t, rdb, topic), 2)
	for _, l := range letters(t, rdb, topic) {
		if l.Reason == recovery.Permanent {
			_, err := recovery.NewDeadLetters(rdb).Replay(t.Context(), topic, l.ID)
			require.NoError(t, err)
		}
	}
	eventually(t, "it is replayed", func() bool {
		return seen.count("c|permanent") == 2 && pending(t, rdb, rediskey.Retry(topic, "g")) == 0
	})
	r.end(t)
	_, err := recovery.Reap(t.Context(), rdb, topic, recovery.ReapOptions{})
	require.NoError(t, err)
	_, err = recovery.NewDeadLetters(rdb).Expire(t.Context(), recovery.Retention{}, topic)
	require.NoError(t, err)
	trimmed, err := recovery.Trim(t.Context(), rdb, topic, recovery.TrimOptions{MaxLen: 1})
	require.NoError(t, err)
	require.EqualValues(t, 4, trimmed.Removed)
	require.Equal(t, log.count("message cannot be handled"), log.count("\n"), "it speaks of the letters alone:\n%s", log.String())
}

// CONN-06: another server's replies may have other fields, which nothing depends on; all
// these tests run on every server of the matrix.
func TestCONN06_CONN07_CONN08_TheProtocolMakesNoDifference(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(o *redis.Options){
		"RESP2":                     func(o *redis.Options) { o.Protocol = 2 },
		"RESP3":                     func(o *redis.Options) { o.Protocol = 3 },
		"maintenance notifications": func(o *redis.Options) { o.MaintNotificationsConfig = nil },
		"maintenance, if there is any": func(o *redis.Options) {
			o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeAuto}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := redistest.Shared(t).Options()
			adjust(o)
			rdb := redis.NewClient(o)
			t.Cleanup(func() { _ = rdb.Close() })
			allOfIt(t, rdb)
		})
	}
}

func TestCONN07_AServerWithoutHELLO(t *testing.T) {
	t.Parallel()
	allOfIt(t, redistest.Standalone(t, `rename-command HELLO ""`, `rename-command CLIENT ""`).Client(t))
}

// CONN-11: what docs/buses.md says a user needs is enough.
func TestCONN11_ARestrictedUser(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret",
		"~stream.*", "~{stream.*", "~headwater:{topics}",
		"-@all", "+@stream", "+@hash", "+@sortedset", "+sadd", "+smembers", "+eval", "+evalsha", "+time", "+exists", "+unlink").Err())
	o := server.Options()
	o.Username, o.Password = "app", "secret"
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	require.True(t, redis.HasErrorPrefix(rdb.Info(t.Context()).Err(), "NOPERM"))
	allOfIt(t, rdb)
}

// CONN-13: a read waits for longer than the client does for replies.
func TestCONN13_ABlockedReadOutlastsTheClientsTimeout(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	p := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr, o.ReadTimeout = p.Addr, 200*time.Millisecond
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	topic := freshTopic()
	var log lines
	var n atomic.Int64
	var all []*running
	for range 2 { // two readers, one message: one of them is woken for nothing
		c := config(topic)
		c.Lease, c.Sweep, c.Logger = time.Minute, time.Minute, log.logger()
		all = append(all, start(t, rdb, c, func(context.Context, string) error { n.Add(1); return nil }))
	}
	eventually(t, "both have waited in vain", func() bool { return p.Count("XREADGROUP") >= 4 })
	publish(t, server.Client(t), topic, "a|1")
	drained(t, rdb, topic)
	require.EqualValues(t, 1, n.Load())
	require.Empty(t, log.String())
	for _, r := range all {
		r.end(t)
	}
}

// DLQ-09: what no server should be asked to take is refused before anything is sent.
func TestDLQ09_AMessageThatIsTooLargeIsRefusedByItsSize(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	large := make([]byte, redisstream.MaxBytes+1)
	err := redisstream.Publish(t.Context(), rdb, topic, []byte("a|1"), large)
	require.ErrorIs(t, err, es.ErrTooLarge)
	require.ErrorContains(t, err, "16777217")
	require.Zero(t, p.Count("XADD")+p.Count("EVALSHA"))
	require.NoError(t, redisstream.Publish(t.Context(), rdb, topic, []byte("a|1")))
	require.EqualValues(t, 1, direct.XLen(t.Context(), topic).Val())
}

// DLQ-10: zero is the default, and nothing turns retries off by accident.
func TestDLQ10_ZeroKnobsAreDefaults(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	var seen calls
	c := redisstream.Config{Topics: []string{topic}, Consumer: "c", Logger: config(topic).Logger}
	c.Group = "g"
	require.NoError(t, redisstream.Prepare(t.Context(), rdb, c))
	r := start(t, rdb, c, func(_ context.Context, text string) error {
		if seen.add(text) == 1 {
			return es.RetryAfter(errFails, time.Millisecond)
		}
		return nil
	})
	publish(t, rdb, topic, "a|1")
	drained(t, rdb, topic)
	require.Equal(t, []string{"a|1", "a|1"}, seen.all())
	require.Empty(t, letters(t, rdb, topic))
	r.end(t)
}
