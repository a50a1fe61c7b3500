package redisstream_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
)

// BIG-04: COUNT is for each stream, and knows no bytes.
func TestBIG04_WhatIsHeldIsBoundedInBytesOverAllTopics(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	const size, topicsRead, each = 64 << 10, 8, 40
	names := make([]string, topicsRead)
	message := append([]byte("a|"), bytes.Repeat([]byte{'x'}, size)...)
	for i := range names {
		names[i] = freshTopic()
		group(t, rdb, names[i])
		for range each {
			require.NoError(t, redisstream.Publish(t.Context(), rdb, names[i], message))
		}
	}
	c := config(names...)
	c.Prefetch, c.PrefetchBytes, c.Lease = 1000, 8*size, time.Minute
	release := make(chan struct{})
	var seen calls
	r := start(t, rdb, c, func(ctx context.Context, _ string) error {
		seen.add("it")
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	held := func() (n int64) {
		for _, name := range names {
			n += pending(t, rdb, name)
		}
		return n
	}
	eventually(t, "the workers are busy", func() bool { return held() >= 8 })
	// The limit, one message of each topic, and the first reply, of eight at most.
	never(t, "it holds more", 500*time.Millisecond, func() bool { return held() > 8+topicsRead+8 })
	close(release)
	for _, name := range names {
		drained(t, rdb, name)
	}
	require.Len(t, seen.all(), topicsRead*each)
	r.end(t)
}

// Messages that wait for another try are bounded as well, and hold nobody up before that.
func TestBIG04_WhatWaitsForAnotherTryIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	c := config(topic)
	c.Prefetch, c.PrefetchBytes, c.Lease = 100, 8<<10, time.Minute
	var seen calls
	r := start(t, rdb, c, func(_ context.Context, text string) error {
		if seen.add(text[:3]); text[0] == 'p' {
			return es.RetryAfter(errFails, time.Hour)
		}
		return nil
	})
	pad := string(bytes.Repeat([]byte{'x'}, 1<<10))
	for i := range 7 {
		publish(t, rdb, topic, "p|"+string(rune('a'+i))+pad)
	}
	publish(t, rdb, topic, "q|1")
	eventually(t, "others go on", func() bool { return seen.count("q|1") == 1 })
	for i := range 40 {
		publish(t, rdb, topic, "p|"+string(rune('A'+i))+pad)
	}
	never(t, "it holds more", 300*time.Millisecond, func() bool { return pending(t, rdb, topic) > 7+8+8 })
	r.end(t)
}

func TestAClosedValveReadsNothingAndKeepsTheLease(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	topic := freshTopic()
	c := config(topic)
	c.Valve = &es.Valve{}
	c.Valve.Close()
	group(t, direct, topic)
	publish(t, direct, topic, "a|1", "b|1")
	abandon(t, direct, topic, "dead", 1)
	var seen calls
	r := start(t, rdb, c, seen.handle)
	alive := func() bool {
		return int64(direct.ZScore(t.Context(), "{"+topic+"}:lease:g", c.Consumer).Val()) > direct.Time(t.Context()).Val().UnixMilli()
	}
	eventually(t, "it has its lease", alive)
	never(t, "its lease runs out", 3*c.Lease, func() bool { return !alive() })
	require.Zero(t, p.Count("XREADGROUP"))
	require.EqualValues(t, 1, pending(t, direct, topic), "what the dead one has is left to others")
	c.Valve.Open()
	drained(t, direct, topic)
	require.ElementsMatch(t, []string{"a|1", "b|1"}, seen.all())
	r.end(t)
}
