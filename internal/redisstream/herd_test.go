package redisstream_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

var claims = regexp.MustCompile(`cmdstat_xclaim:calls=(\d+)`)

// BIG-02: many that begin at once don't all claim the same.
func TestBIG02_AHerdOfSubscribersClaimsEachMessageOnce(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	topic := freshTopic()
	group(t, rdb, topic)
	const n = 200
	publish(t, rdb, topic, numbered(n, "a", "b", "c", "d", "e", "f")...)
	for _, dead := range []string{"x", "y", "z", "w"} {
		abandon(t, rdb, topic, dead, n/4)
	}
	require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
	var seen calls
	var all []*running
	for range 20 {
		c := config(topic)
		c.Workers, c.Lease = 2, 5*time.Second
		all = append(all, start(t, rdb, c, seen.handle))
	}
	drained(t, rdb, topic)
	require.Len(t, seen.all(), n, "each once")
	stats := claims.FindStringSubmatch(rdb.Info(t.Context(), "commandstats").Val())
	require.Len(t, stats, 2)
	calls, err := strconv.Atoi(stats[1])
	require.NoError(t, err)
	require.LessOrEqual(t, calls, 2*n, "one to claim it, one to count its delivery")
	for _, r := range all {
		r.end(t)
	}
}
