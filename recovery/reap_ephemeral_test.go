package recovery_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestEphemeralGroupsGoWithTheirOnlyConsumer(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		name := func(s string) string { return recovery.EphemeralPrefix + s }
		crashed, left, alive, lasting := name("crashed"), name("left"), name("alive"), "lasting"
		for _, group := range []string{crashed, left, alive, lasting} {
			groupAt(t, rdb, topic, group, "0")
			groupAt(t, rdb, rediskey.Retry(topic, group), group, "0")
			require.NoError(t, rdb.HSet(t.Context(), rediskey.Failed(topic, group), "1-1", "1").Err())
		}
		publish(t, rdb, topic, 3)
		for _, group := range []string{crashed, left, alive, lasting} {
			readAs(t, rdb, topic, group, "c", 3)
		}
		lease(t, rdb, topic, crashed, "c", -time.Hour)
		lease(t, rdb, topic, left, "c", 0)
		lease(t, rdb, topic, alive, "c", -time.Minute)
		lease(t, rdb, topic, lasting, "c", -time.Hour)

		dry := reaped(t, rdb, topic, recovery.ReapOptions{DryRun: true})
		require.ElementsMatch(t, []string{crashed, left}, dry.Groups)
		require.ElementsMatch(t, []recovery.Member{{Group: crashed, Consumer: "c"}, {Group: left, Consumer: "c"}}, dry.Consumers)
		require.ElementsMatch(t, []string{crashed, left, alive, lasting}, groupsOf(t, rdb, topic), "nothing is changed")
		require.EqualValues(t, 3, keysOf(t, rdb, topic, crashed))

		require.Equal(t, dry, reaped(t, rdb, topic, recovery.ReapOptions{}))
		require.ElementsMatch(t, []string{alive, lasting}, groupsOf(t, rdb, topic))
		for group, keys := range map[string]int64{crashed: 0, left: 0, alive: 3, lasting: 3} {
			require.Equal(t, keys, keysOf(t, rdb, topic, group), group)
		}
	})
}

func TestAnEphemeralGroupHasTimeToGetItsFirstLease(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, group := freshTopic(), recovery.EphemeralPrefix+"new"
		require.True(t, recovery.IsEphemeral(group))
		require.False(t, recovery.IsEphemeral("x"+group))
		groupAt(t, rdb, topic, group, "$")
		require.Equal(t, recovery.Reaped{}, reaped(t, rdb, topic, recovery.ReapOptions{DryRun: true, DeadFor: time.Millisecond}))
		require.Empty(t, leasesOf(t, rdb, topic, group), "a dry run leaves no trace")
		require.Equal(t, recovery.Reaped{}, reaped(t, rdb, topic, recovery.ReapOptions{DeadFor: time.Millisecond}), "the first look")
		require.Equal(t, recovery.Reaped{}, reaped(t, rdb, topic, recovery.ReapOptions{}), "ten minutes have not passed")
		lease(t, rdb, topic, group, "c", time.Minute)
		first := serverTime(t, rdb, 0)
		require.Eventually(t, func() bool { return serverTime(t, rdb, 0) > first+1 }, patience, pause)
		require.Equal(t, recovery.Reaped{}, reaped(t, rdb, topic, recovery.ReapOptions{DeadFor: time.Millisecond}), "its owner is there")
		require.Equal(t, []string{"c"}, leasesOf(t, rdb, topic, group))
		require.NoError(t, rdb.Del(t.Context(), rediskey.Leases(topic, group)).Err())
		require.Eventually(t, func() bool {
			return slices.Equal([]string{group}, reaped(t, rdb, topic, recovery.ReapOptions{DeadFor: time.Millisecond}).Groups)
		}, patience, pause, "its owner never came")
	})
}

func groupsOf(t testing.TB, rdb redis.UniversalClient, stream string) []string {
	t.Helper()
	infos, err := rdb.XInfoGroups(t.Context(), stream).Result()
	require.NoError(t, err)
	names := []string{}
	for _, info := range infos {
		names = append(names, info.Name)
	}
	return names
}

// keysOf counts the keys of a group beside the topic.
func keysOf(t testing.TB, rdb redis.UniversalClient, topic, group string) int64 {
	t.Helper()
	n, err := rdb.Exists(t.Context(), rediskey.Retry(topic, group), rediskey.Leases(topic, group), rediskey.Failed(topic, group)).Result()
	require.NoError(t, err)
	return n
}
