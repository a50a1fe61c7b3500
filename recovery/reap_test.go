package recovery_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func reaped(t testing.TB, rdb redis.UniversalClient, topic string, o recovery.ReapOptions) recovery.Reaped {
	t.Helper()
	done, err := recovery.Reap(t.Context(), rdb, topic, o)
	require.NoError(t, err)
	return done
}

// lease gives a consumer a deadline that is d from now; it left where d is 0.
func lease(t testing.TB, rdb redis.UniversalClient, topic, group, consumer string, d time.Duration) {
	t.Helper()
	deadline := int64(0)
	if d != 0 {
		deadline = serverTime(t, rdb, d)
	}
	require.NoError(t, rdb.ZAdd(t.Context(), rediskey.Leases(topic, group), redis.Z{Score: float64(deadline), Member: consumer}).Err())
}

func leasesOf(t testing.TB, rdb redis.UniversalClient, topic, group string) []string {
	t.Helper()
	names, err := rdb.ZRange(t.Context(), rediskey.Leases(topic, group), 0, -1).Result()
	require.NoError(t, err)
	slices.Sort(names)
	return names
}

func consumersOf(t testing.TB, rdb redis.UniversalClient, stream, group string) []string {
	t.Helper()
	infos, err := rdb.XInfoConsumers(t.Context(), stream, group).Result()
	require.NoError(t, err)
	names := []string{}
	for _, info := range infos {
		names = append(names, info.Name)
	}
	slices.Sort(names)
	return names
}

func join(t testing.TB, rdb redis.UniversalClient, stream, group string, consumers ...string) {
	t.Helper()
	for _, consumer := range consumers {
		require.NoError(t, rdb.XGroupCreateConsumer(t.Context(), stream, group, consumer).Err())
	}
}

func TestCHURN01_ConsumersThatAreGoneAreRemoved(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		publish(t, rdb, topic, 10)
		const dead = 2000
		passed, left := serverTime(t, rdb, -time.Hour), 0.0
		_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := range dead {
				name, deadline := fmt.Sprintf("dead-%04d", i), float64(passed)
				if i%2 == 0 {
					deadline = left
				}
				p.XGroupCreateConsumer(t.Context(), topic, "g", name)
				p.ZAdd(t.Context(), rediskey.Leases(topic, "g"), redis.Z{Score: deadline, Member: name})
			}
			return nil
		})
		require.NoError(t, err)
		held := readAs(t, rdb, topic, "g", "dead-0007", 3)
		join(t, rdb, topic, "g", "alive", "silent")
		lease(t, rdb, topic, "g", "alive", time.Minute)
		lease(t, rdb, topic, "g", "silent", -time.Minute) // not for long enough
		lease(t, rdb, topic, "g", "never-read", -time.Hour)
		lease(t, rdb, topic, "g", "about-to-read", time.Minute)

		stay := []string{"alive", "dead-0007", "silent"}
		dry := reaped(t, rdb, topic, recovery.ReapOptions{DryRun: true})
		require.Len(t, dry.Consumers, dead-1)
		require.Len(t, consumersOf(t, rdb, topic, "g"), dead+2, "nothing is changed")
		require.Len(t, leasesOf(t, rdb, topic, "g"), dead+4)

		require.ElementsMatch(t, dry.Consumers, reaped(t, rdb, topic, recovery.ReapOptions{}).Consumers)
		require.Equal(t, stay, consumersOf(t, rdb, topic, "g"))
		require.Equal(t, []string{"about-to-read", "alive", "dead-0007", "silent"}, leasesOf(t, rdb, topic, "g"))
		require.Equal(t, recovery.Reaped{}, reaped(t, rdb, topic, recovery.ReapOptions{}))

		ack(t, rdb, topic, "g", held...)
		require.Equal(t, []recovery.Member{{Group: "g", Consumer: "dead-0007"}}, reaped(t, rdb, topic, recovery.ReapOptions{}).Consumers)
		require.Equal(t, []recovery.Member{{Group: "g", Consumer: "silent"}},
			reaped(t, rdb, topic, recovery.ReapOptions{DeadFor: time.Second}).Consumers)
	})
}

// The reaper goes round and round while a consumer that looks dead comes back and reads.
func TestCHURN02_AConsumerThatComesBackLosesNothing(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		removed, reaper := 0, make(chan error, 1)
		go func() {
			var err error
			for ctx.Err() == nil && err == nil {
				var done recovery.Reaped
				done, err = recovery.Reap(t.Context(), rdb, topic, recovery.ReapOptions{DeadFor: time.Millisecond}) //nolint:contextcheck // it is the test's own
				removed += len(done.Consumers)
			}
			reaper <- err
		}()
		for range 300 {
			lease(t, rdb, topic, "g", "c", -time.Hour)
			publish(t, rdb, topic, 5)
			read := readAs(t, rdb, topic, "g", "c", 5)
			summary, err := rdb.XPending(t.Context(), topic, "g").Result()
			require.NoError(t, err)
			require.EqualValues(t, 5, summary.Count, "what it read is in the group")
			ack(t, rdb, topic, "g", read...)
		}
		cancel()
		require.NoError(t, <-reaper)
		require.Positive(t, removed, "it did reap")
	})
}

func TestCHURN03_AConsumerIsJudgedByItsLeaseAndNotByItsIdleTime(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		join(t, rdb, topic, "g", "polls-a-quiet-topic")
		lease(t, rdb, topic, "g", "polls-a-quiet-topic", time.Minute)
		const threshold = 10 * time.Millisecond
		require.Eventually(t, func() bool { return idle(t, rdb, topic, "g") > 10*threshold }, patience, pause)
		o := recovery.ReapOptions{DeadFor: threshold, IdleForeign: threshold}
		require.Equal(t, recovery.Reaped{}, reaped(t, rdb, topic, o))
		require.NoError(t, rdb.ZRem(t.Context(), rediskey.Leases(topic, "g"), "polls-a-quiet-topic").Err())
		require.Equal(t, recovery.Reaped{}, reaped(t, rdb, topic, recovery.ReapOptions{DeadFor: threshold}), "24 hours for a Kotlin consumer")
		require.Len(t, reaped(t, rdb, topic, o).Consumers, 1)
	})
}

func idle(t testing.TB, rdb redis.UniversalClient, stream, group string) time.Duration {
	t.Helper()
	infos, err := rdb.XInfoConsumers(t.Context(), stream, group).Result()
	require.NoError(t, err)
	return infos[0].Idle
}

func TestLOST03_AConsumerThatHoldsMessagesStays(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		retry := rediskey.Retry(topic, "g")
		groupAt(t, rdb, topic, "g", "0")
		groupAt(t, rdb, retry, "g", "0")
		ids := publish(t, rdb, topic, 10)
		publish(t, rdb, retry, 1)
		readAs(t, rdb, topic, "g", "dead", 10)
		readAs(t, rdb, retry, "g", "dead too", 1)
		for _, consumer := range []string{"dead", "dead too"} {
			lease(t, rdb, topic, "g", consumer, 0)
		}
		join(t, rdb, topic, "g", "dead too")
		join(t, rdb, retry, "g", "dead")
		for claimed, id := range ids {
			require.Equal(t, recovery.Reaped{}, reaped(t, rdb, topic, recovery.ReapOptions{IdleForeign: time.Millisecond}), "%d are claimed", claimed)
			moved, err := rdb.XClaimJustID(t.Context(), &redis.XClaimArgs{Stream: topic, Group: "g", Consumer: "alive", Messages: []string{id}}).Result()
			require.NoError(t, err)
			require.Equal(t, []string{id}, moved)
			lease(t, rdb, topic, "g", "alive", time.Minute)
		}
		require.Equal(t, []recovery.Member{{Group: "g", Consumer: "dead"}}, reaped(t, rdb, topic, recovery.ReapOptions{}).Consumers)
		require.Equal(t, []string{"alive", "dead too"}, consumersOf(t, rdb, topic, "g"))
		require.Equal(t, []string{"dead too"}, consumersOf(t, rdb, retry, "g"), "what it holds of the retries counts")
		summary, err := rdb.XPending(t.Context(), topic, "g").Result()
		require.NoError(t, err)
		require.EqualValues(t, 10, summary.Count)
	})
}

func TestReapOfATopicThatIsNotThere(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		require.Equal(t, recovery.Reaped{}, reaped(t, rdb, topic, recovery.ReapOptions{}))
		require.NoError(t, rdb.Set(t.Context(), topic, "no stream", 0).Err())
		_, err := recovery.Reap(t.Context(), rdb, topic, recovery.ReapOptions{})
		require.ErrorIs(t, err, es.ErrCorrupt)
		_, err = recovery.Reap(t.Context(), rdb, topic, recovery.ReapOptions{DeadFor: -1})
		require.ErrorIs(t, err, es.ErrInvalid)
		_, err = recovery.Reap(t.Context(), rdb, topic, recovery.ReapOptions{IdleForeign: -1})
		require.ErrorIs(t, err, es.ErrInvalid)
	})
}
