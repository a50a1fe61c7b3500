package recovery_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// The examples and the CLI's demo run on an embedded server.
func TestAllVerbsWorkOnTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	tryAllVerbs(t, rdb, rdb)
}

func TestAllVerbsWorkOnAClientThatPipelinesByItself(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		ap, err := rdb.AutoPipeline()
		require.NoError(t, err)
		t.Cleanup(func() { _ = ap.Close() })
		tryAllVerbs(t, rdb, ap)
	})
}

// tryAllVerbs calls each verb by way of the client used.
func tryAllVerbs(t *testing.T, rdb, used redis.UniversalClient) {
	t.Helper()
	topic, ids := abandon(t, rdb, "dead", 4)
	a := settled(t, used, topic, "a")
	a.SharedWithWow = true
	taken, _ := sweep(t, a, topic, 0)
	require.Equal(t, ids, entryIDs(taken))
	require.Equal(t, 1, taken[0].Deliveries)
	n, err := a.Raise(t.Context(), topic, ids[0])
	require.NoError(t, err)
	require.Equal(t, 2, n)
	count, _, err := a.Fail(t.Context(), topic, ids[0], errors1)
	require.NoError(t, err)
	require.Equal(t, 1, count)
	require.NoError(t, a.Bury(t.Context(), topic, ids[0], recovery.Letter{}))
	require.NoError(t, a.Bury(t.Context(), topic, ids[0], recovery.Letter{}))
	letters := buried(t, rdb, topic)
	require.Len(t, letters, 1)
	require.Equal(t, recovery.Fields{"msg", "{}"}, letters[0].Fields)
	require.NoError(t, a.GiveBack(t.Context(), topic, ids[1:2]))
	require.EqualValues(t, 0, pendingOf(t, rdb, topic, "a")[0].RetryCount)
	lost, err := a.Ack(t.Context(), topic, ids)
	require.NoError(t, err)
	require.Empty(t, lost, "the first was buried, and is nobody's")
	require.Empty(t, pendingIDs(t, rdb, topic, ""))
	require.NoError(t, a.Renew(t.Context()))
	require.NoError(t, a.Leave(t.Context()))
	require.Zero(t, deadline(t, rdb, topic, "a"))
}

// More than one page is left, on a server that knows no "(" in XPENDING.
func TestASweepGoesThroughItsPagesOnTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	topic, ids := abandon(t, rdb, "dead", 250)
	a := settled(t, rdb, topic, "a")
	taken, _ := sweep(t, a, topic, 300)
	require.Equal(t, ids, entryIDs(taken))
	require.Len(t, pendingOf(t, rdb, topic, "a"), 250)
}
