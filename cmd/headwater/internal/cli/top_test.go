package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestTop(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	sinceSeven(t, rdb)
	send(t, rdb, topic, 5)
	take(t, rdb, topic, "projection", "c", 2)
	bury(t, rdb, topic, "projection", 1, "x")
	plant(t, rdb, order.ID("o-1"), 1, true)
	s := newSession(t, "top", url)
	s.volatile = regexp.MustCompile(`(?m)^SERVER .*$|"(ops_per_s|clients|blocked)":\d+`)
	s.run("top", "--once", "--interval", "10ms")
	s.run("top", "--once", "--interval", "0s")
}

// The group acknowledges two of three between the looks, and ten entries come.
func TestTopShowsRates(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	sinceSeven(t, rdb)
	send(t, rdb, topic, 5)
	g, entries := take(t, rdb, topic, "projection", "c", 3)
	out := &watched{lines: make(chan string, 100)}
	stop := follow(t, url, out, "top", "--json", "--interval", "50ms")
	<-out.lines
	for range 10 {
		require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: []string{"msg", "x"}}).Err())
	}
	_, err := g.Ack(t.Context(), topic, []string{entries[0].ID, entries[1].ID})
	require.NoError(t, err)
	in, out2 := false, false
	for !in || !out2 {
		line := <-out.lines
		in = in || !strings.Contains(line, `"in_per_s":0}`)
		out2 = out2 || !strings.Contains(line, `"out_per_s":0}`)
	}
	require.Zero(t, stop().code)
}

func TestBench(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	s := newSession(t, "bench", url)
	s.volatile = regexp.MustCompile(`\b\d+  +\d+  +\d+$|"(per_s|p50_us|p99_us)":[\d.]+`)
	s.run("bench", "--seconds", "0")
	s.run("bench")
	s.once("bench", "--seconds", "0.05", "--concurrent", "4", "--yes", "--json")
	require.Zero(t, rdb.DBSize(t.Context()).Val(), "it removes what it wrote")
	r := run(t, url, "bench", "--seconds", "0.05", "--yes")
	require.Zero(t, r.code)
	require.Regexp(t, `append \(one event, with note\) +\d+ +\d+ +\d+\n`, r.out)
}
