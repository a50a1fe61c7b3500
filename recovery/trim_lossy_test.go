package recovery_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestDEL05_ALossyLimitSaysHowManyWereLostAndForWhom(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		for _, group := range []string{"done", "half", "stopped"} {
			groupAt(t, rdb, topic, group, "0")
		}
		ids := old(t, rdb, topic, 5000)
		readAs(t, rdb, topic, "done", "c", 5000)
		ack(t, rdb, topic, "done", ids...)
		readAs(t, rdb, topic, "half", "c", 3000)
		ack(t, rdb, topic, "half", ids[:2500]...)
		readAs(t, rdb, topic, "stopped", "c", 2400)
		ack(t, rdb, topic, "stopped", ids[:2400]...)

		done := trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 10, LossyMaxLen: 1000})
		require.Equal(t, []int64{2400, 1600, 500}, []int64{done.Removed, done.Lost, done.Cleared})
		require.Equal(t, ids[4000:], idsIn(t, rdb, topic))
		require.Equal(t, []string{"half", "stopped"}, groupNames(done.LostBy))
		require.Equal(t, []string{ids[2500], ids[2400]}, []string{done.LostBy[0].First, done.LostBy[1].First})
		require.Equal(t, []string{"half", "stopped"}, groupNames(done.HeldBack), "what MaxLen would have taken")

		again := trimmed(t, rdb, topic, recovery.TrimOptions{LossyMaxAge: time.Hour})
		require.Equal(t, []int64{0, 1000, 0}, []int64{again.Removed, again.Lost, again.Cleared})
		require.Equal(t, recovery.Trimmed{}, trimmed(t, rdb, topic, recovery.TrimOptions{LossyMaxAge: time.Hour}))
	})
}

// What every group has acked goes first, however many steps that takes.
func TestWhatWasAckedIsNotCountedAsLost(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		ids := old(t, rdb, topic, 3000)
		readAs(t, rdb, topic, "g", "c", 2500)
		ack(t, rdb, topic, "g", ids[:2500]...)
		done := trimmed(t, rdb, topic, recovery.TrimOptions{LossyMaxAge: time.Hour})
		require.Equal(t, []int64{2500, 500, 0}, []int64{done.Removed, done.Lost, done.Cleared})
	})
}

func TestDEL08_WhatALossyLimitRemovesIsPendingNoMore(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "a", "0")
		groupAt(t, rdb, topic, "b", "0")
		ids := old(t, rdb, topic, 2600)
		readAs(t, rdb, topic, "a", "c", 2600)
		readAs(t, rdb, topic, "b", "c", 100)
		require.NoError(t, rdb.XDel(t.Context(), topic, ids[50:2550]...).Err())
		publish(t, rdb, topic, 5)
		readAs(t, rdb, topic, "a", "c", 5)
		done := trimmed(t, rdb, topic, recovery.TrimOptions{LossyMaxAge: time.Hour})
		require.Equal(t, []int64{0, 100, 2700}, []int64{done.Removed, done.Lost, done.Cleared})
		for group, pending := range map[string]int64{"a": 5, "b": 0} {
			summary, err := rdb.XPending(t.Context(), topic, group).Result()
			require.NoError(t, err)
			require.Equal(t, pending, summary.Count, group)
		}
	})
}

func TestWithoutAGroupOnlyALossyLimitTrims(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		ids := old(t, rdb, topic, 30)
		require.Equal(t, recovery.Trimmed{}, trimmed(t, rdb, topic, recovery.TrimOptions{MaxAge: time.Hour, MaxLen: 1}))
		require.Equal(t, recovery.Trimmed{Lost: 10}, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 1, LossyMaxLen: 20}))
		require.Equal(t, ids[10:], idsIn(t, rdb, topic))
		require.Equal(t, recovery.Trimmed{}, trimmed(t, rdb, freshTopic(), recovery.TrimOptions{MaxLen: 1, LossyMaxLen: 1}), "no stream")
	})
}

func TestTrimWantsALimit(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for _, o := range []recovery.TrimOptions{{}, {MaxAge: -1}, {MaxLen: -1}, {LossyMaxAge: -1}, {MaxLen: 1, LossyMaxLen: -1}} {
		_, err := recovery.Trim(t.Context(), rdb, freshTopic(), o)
		require.ErrorIs(t, err, es.ErrInvalid)
	}
}

func TestTrimReportsAStrangeKey(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		require.NoError(t, rdb.Set(t.Context(), topic, "no stream", 0).Err())
		_, err := recovery.Trim(t.Context(), rdb, topic, recovery.TrimOptions{MaxLen: 1})
		require.ErrorIs(t, err, es.ErrCorrupt)
		require.ErrorContains(t, err, topic)
	})
}

// Memory that is full must not keep anybody from trimming.
func TestTrimWorksWhileMemoryIsFull(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	publish(t, rdb, topic, 100)
	ack(t, rdb, topic, "g", readAs(t, rdb, topic, "g", "c", 100)...)
	trimmed(t, rdb, freshTopic(), recovery.TrimOptions{MaxLen: 1}) // the script is known
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.EqualValues(t, 99, trimmed(t, rdb, topic, recovery.TrimOptions{MaxLen: 1}).Removed)
}
