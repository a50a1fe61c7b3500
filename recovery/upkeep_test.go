package recovery_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// keeping is a [recovery.Keep] that runs, and what it reports.
type keeping struct {
	stop  context.CancelFunc
	ended chan error
	kept  chan recovery.Kept
}

func keeps(t *testing.T, rdb redis.UniversalClient, u recovery.Upkeep) *keeping {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	k := &keeping{stop, make(chan error, 1), make(chan recovery.Kept, 10_000)}
	u.Report = func(_ context.Context, kept recovery.Kept) { k.kept <- kept }
	go func() { k.ended <- recovery.Keep(ctx, rdb, u) }()
	t.Cleanup(stop)
	return k
}

func (k *keeping) next(t *testing.T) recovery.Kept {
	t.Helper()
	select {
	case kept := <-k.kept:
		return kept
	case <-time.After(patience):
		require.Fail(t, "it reports nothing")
		return recovery.Kept{}
	}
}

func (k *keeping) end(t *testing.T) {
	t.Helper()
	k.stop()
	require.NoError(t, <-k.ended)
}

func TestDEL06_KeepTrimsAndReapsAndNamesWhoHoldsItBack(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "gone", 10)
		require.NoError(t, rdb.XAck(t.Context(), topic, "g", ids...).Err())
		groupAt(t, rdb, topic, "slow", ids[3])
		ephemeral := recovery.EphemeralPrefix + "x"
		groupAt(t, rdb, topic, ephemeral, "$")
		lease(t, rdb, topic, ephemeral, "owner", -time.Hour)
		lease(t, rdb, topic, "g", "gone", -time.Hour)
		k := keeps(t, rdb, recovery.Upkeep{
			Name: rand.Text(), Topics: []string{topic}, Trim: recovery.TrimOptions{MaxLen: 2}, Every: 20 * time.Millisecond,
		})
		kept := k.next(t)
		require.NoError(t, kept.Err)
		require.Equal(t, topic, kept.Topic)
		require.EqualValues(t, 4, kept.Trimmed.Removed)
		require.Len(t, kept.Trimmed.HeldBack, 1)
		require.Equal(t, "slow", kept.Trimmed.HeldBack[0].Group)
		require.Equal(t, ids[4], kept.Trimmed.HeldBack[0].First)
		require.Equal(t, []recovery.Member{{Group: "g", Consumer: "gone"}}, kept.Reaped.Consumers)
		require.Equal(t, []string{ephemeral}, kept.Reaped.Groups)
		require.NoError(t, rdb.XGroupSetID(t.Context(), topic, "slow", "$").Err())
		require.Eventually(t, func() bool { return rdb.XLen(t.Context(), topic).Val() == 2 }, patience, time.Millisecond, "it goes on")
		k.end(t)
	})
}

func TestBIG02_OneKeeperWorksAtATime(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic, _ := abandon(t, rdb, "a", 1)
	u := recovery.Upkeep{Name: rand.Text(), Topics: []string{topic}, Every: 10 * time.Millisecond}
	turn := rediskey.Upkeep(u.Name)
	require.NoError(t, rdb.Set(t.Context(), turn, "another", time.Hour).Err())
	k := keeps(t, rdb, u)
	require.Never(t, func() bool { return len(k.kept) > 0 }, 300*time.Millisecond, time.Millisecond)
	require.NoError(t, rdb.PExpire(t.Context(), turn, time.Millisecond).Err()) // the other was killed, a while ago
	k.next(t)
	k.end(t)
	require.Eventually(t, func() bool { return rdb.Exists(t.Context(), turn).Val() == 0 }, patience, time.Millisecond, "it gives its turn back")
}

func TestKeepTakesAllTopicsThatSubscriptionsBeganOnAndReportsErrors(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	topic, other := freshTopic(), freshTopic()
	require.NoError(t, rdb.Set(t.Context(), topic, "no stream", 0).Err())
	require.NoError(t, recovery.Register(t.Context(), rdb, topic, other))
	k := keeps(t, rdb, recovery.Upkeep{Every: 10 * time.Millisecond})
	kept := map[string]error{}
	for len(kept) < 2 {
		one := k.next(t)
		kept[one.Topic] = one.Err
	}
	require.Error(t, kept[topic])
	require.NoError(t, kept[other], "one that fails holds up no other")
	k.end(t)
}

func TestKeepRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for _, u := range []recovery.Upkeep{
		{Name: "{a}"}, {Every: -1}, {Topics: []string{" "}}, {Trim: recovery.TrimOptions{MaxLen: -1}},
		{Reap: recovery.ReapOptions{DeadFor: -1}}, {Letters: recovery.Retention{MaxCount: -1}},
	} {
		require.ErrorIs(t, recovery.Keep(t.Context(), rdb, u), es.ErrInvalid)
	}
}
