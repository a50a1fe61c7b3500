package redisstream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
)

// send publishes until it succeeds.
func send(t testing.TB, rdb redis.UniversalClient, topic, text string) {
	t.Helper()
	eventually(t, text+" is published", func() bool {
		return redisstream.Publish(t.Context(), rdb, topic, []byte(text)) == nil
	})
}

func TestFAIL09_FAIL11_RestartsOfTheServerEndNoSubscription(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "appendonly yes", "appendfsync always")
	rdb := server.Client(t)
	topic := freshTopic()
	c := config(topic)
	var log lines
	c.Logger = log.logger()
	var seen calls
	r := start(t, rdb, c, seen.handle)
	for i := range 6 {
		send(t, rdb, topic, fmt.Sprint("a|", i))
		if i%2 == 0 {
			server.Kill(t)
			never(t, "it ends", time.Duration(rand.IntN(300))*time.Millisecond, func() bool { return len(r.ended) > 0 })
			server.Start(t)
		} else {
			server.Restart(t)
		}
	}
	send(t, rdb, topic, "a|last")
	eventually(t, "all are handled", func() bool {
		n := seen.count("a|last")
		for i := range 6 {
			n *= seen.count(fmt.Sprint("a|", i))
		}
		return n > 0
	})
	drained(t, rdb, topic)
	require.LessOrEqual(t, log.count("reading failed"), 4, log.String())
	r.end(t)
}

func TestFAIL03_ALoadingServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	if !redistest.Shared(t).Knows(t, "FUNCTION") { // 7.0 has it
		t.Skip("this server cannot be made to answer while it loads little")
	}
	server := redistest.Standalone(t, "key-load-delay 20000", "rdbcompression no", "loading-process-events-interval-bytes 1024")
	rdb := server.Client(t)
	topic := freshTopic()
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	send(t, rdb, topic, "a|1")
	drained(t, rdb, topic)
	pipe := rdb.Pipeline()
	for i := range 100 {
		pipe.Set(t.Context(), fmt.Sprint("filler", i), strings.Repeat("x", 2000), 0)
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	require.NoError(t, rdb.Save(t.Context()).Err())
	server.Kill(t)
	var starting sync.WaitGroup
	starting.Go(func() { server.Start(t) })
	o := server.Options()
	o.MaxRetries = -1
	impatient := redis.NewClient(o)
	defer impatient.Close() //nolint:errcheck // it only looks
	eventually(t, "it loads", func() bool { return redis.HasErrorPrefix(impatient.Ping(t.Context()).Err(), "LOADING") })
	late := freshTopic()
	r2 := start(t, rdb, config(late), seen.handle) // begins while it loads
	send(t, rdb, topic, "a|2")
	send(t, rdb, late, "b|1")
	eventually(t, "both go on", func() bool { return seen.count("a|2")*seen.count("b|1") > 0 })
	starting.Wait()
	r.end(t)
	r2.end(t)
}

func TestFAIL05_AServerThatRefusesWritesIsWaitedOut(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	c := config(topic)
	var log lines
	c.Logger = log.logger()
	var seen calls
	r := start(t, rdb, c, seen.handle)
	publish(t, direct, topic, "a|1")
	drained(t, direct, topic)
	dir, err := direct.ConfigGet(t.Context(), "dir").Result()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir["dir"], "dump.rdb"), 0o700))
	require.NoError(t, direct.ConfigSet(t.Context(), "save", "3600 1").Err())
	require.NoError(t, direct.BgSave(t.Context()).Err())
	eventually(t, "writes are refused", func() bool {
		return redisstream.Publish(t.Context(), direct, topic, []byte("a|refused")) != nil
	})
	eventually(t, "it says so", func() bool { return log.count("MISCONF") > 0 })
	reads := p.Count("XREADGROUP")
	never(t, "it reads in a loop", time.Second, func() bool { return p.Count("XREADGROUP") > reads+20 })
	require.LessOrEqual(t, log.count("\n"), 8, log.String())
	require.NoError(t, direct.ConfigSet(t.Context(), "stop-writes-on-bgsave-error", "no").Err())
	send(t, direct, topic, "a|2")
	eventually(t, "it goes on", func() bool { return seen.count("a|2") > 0 })
	drained(t, direct, topic)
	require.Empty(t, letters(t, direct, topic))
	r.end(t)
}

func TestFAIL06_MissingReplicasSpendNoAttempt(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	topic := freshTopic()
	c := config(topic)
	c.MaxDeliveries = 2
	var seen calls
	r := start(t, rdb, c, func(ctx context.Context, text string) error {
		if seen.add(text) == 1 {
			require.NoError(t, rdb.ConfigSet(ctx, "min-replicas-to-write", "5").Err())
		}
		return redisstream.Publish(ctx, rdb, "stream.other:event", []byte("x"))
	})
	publish(t, rdb, topic, "a|1")
	eventually(t, "it is tried on", func() bool { return seen.count("a|1") > 5 })
	require.NoError(t, rdb.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	drained(t, rdb, topic)
	require.Empty(t, letters(t, rdb, topic))
	r.end(t)
}

func TestFAIL01_FAIL10_FailoversUnderSentinelEndNoSubscription(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	rdb := s.Client(t)
	topic := freshTopic()
	var seen calls
	r := start(t, rdb, config(topic), seen.handle)
	for i := range 2 {
		text := fmt.Sprint("a|", i)
		send(t, rdb, topic, text)
		eventually(t, "it is handled", func() bool { return seen.count(text) > 0 })
		s.Failover(t)
	}
	send(t, rdb, topic, "a|moved")
	eventually(t, "it goes on", func() bool { return seen.count("a|moved") > 0 })
	master := s.Master(t)
	master.Kill(t)
	s.AwaitFailover(t, master)
	send(t, rdb, topic, "a|after the crash")
	eventually(t, "it goes on", func() bool { return seen.count("a|after the crash") > 0 })
	r.end(t)
}
