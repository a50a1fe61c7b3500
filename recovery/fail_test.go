package recovery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/recovery"
)

var errors1 = errors.New("the handler's error")

func TestFailuresAreCountedForTheWholeGroup(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "a", 2)
		a := recovery.NewGroup(rdb, topic, "g", "a")
		before := serverTime(t, rdb, 0)
		count, first, err := a.Fail(t.Context(), topic, ids[0], errors1)
		require.NoError(t, err)
		require.Equal(t, 1, count)
		require.GreaterOrEqual(t, first.UnixMilli(), before)
		require.LessOrEqual(t, first.UnixMilli(), serverTime(t, rdb, 0))
		require.Eventually(t, func() bool { return serverTime(t, rdb, 0) > first.UnixMilli() }, patience, time.Millisecond)
		count, again, err := a.Fail(t.Context(), topic, ids[0], errors.New("another"))
		require.NoError(t, err)
		require.Equal(t, 2, count)
		require.Equal(t, first, again)

		taken, _ := sweep(t, settled(t, rdb, topic, "b"), topic, 0)
		require.Equal(t, 2, taken[0].Failures)
		require.Equal(t, first, taken[0].First)
		require.Equal(t, 1, taken[0].Deliveries, "a failure is no crash")
		require.Zero(t, taken[1].Failures)
		require.True(t, taken[1].First.IsZero())

		_, _, err = a.Fail(t.Context(), topic, ids[0], errors1)
		require.ErrorIs(t, err, recovery.ErrNotOwner)
		b := recovery.NewGroup(rdb, topic, "g", "b")
		count, _, err = b.Fail(t.Context(), topic, ids[0], errors1)
		require.NoError(t, err)
		require.Equal(t, 3, count, "nothing was counted for the one that lost it")
	})
}

func TestAFailureWhoseReplyWasLostIsCountedOnce(t *testing.T) {
	t.Parallel()
	p, rdb := through(t)
	topic, ids := abandon(t, rdb, "a", 1)
	a := recovery.NewGroup(rdb, topic, "g", "a")
	for want := 1; want < 4; want++ {
		if want > 1 {
			p.DropReply("EVALSHA " + lua.FailEntry.Hash())
		}
		count, _, err := a.Fail(t.Context(), topic, ids[0], errors1)
		require.NoError(t, err)
		require.Equal(t, want, count)
		require.Zero(t, p.Pending())
	}
}

func TestAnErrorsTextIsKeptValidAndBounded(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for _, text := range []string{
		"", "with\nlines\x00 and a 9 1 2 3", "\xff\xfe", strings.Repeat("\xff", 10_000), strings.Repeat("é", 5_000), "x" + strings.Repeat("é", 5_000),
		"xx" + strings.Repeat("😀", 2_000), strings.Repeat("x", recovery.MaxErrorBytes-1) + "é", strings.Repeat("x", recovery.MaxErrorBytes),
	} {
		topic, ids := abandon(t, rdb, "a", 1)
		a := recovery.NewGroup(rdb, topic, "g", "a")
		count, _, err := a.Fail(t.Context(), topic, ids[0], errors.New(text))
		require.NoError(t, err)
		require.Equal(t, 1, count)
		kept := strings.SplitN(failuresOf(t, rdb, topic)[ids[0]], " ", 5)[4]
		require.NoError(t, a.Bury(t.Context(), topic, ids[0], recovery.Letter{Error: text}))
		require.Equal(t, kept, buried(t, rdb, topic)[0].Error)
		require.True(t, utf8.ValidString(kept))
		require.LessOrEqual(t, len(kept), recovery.MaxErrorBytes)
		valid := strings.ToValidUTF8(text, "\uFFFD")
		require.True(t, strings.HasPrefix(valid, kept))
		if len(valid) > recovery.MaxErrorBytes {
			require.Greater(t, len(kept), recovery.MaxErrorBytes-utf8.UTFMax)
		} else {
			require.Equal(t, valid, kept)
		}
	}
}

// An entry of the topic and one of the retry stream may have the same id.
func TestFailuresOfTheRetryStreamAreTheirOwn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		a := recovery.NewGroup(rdb, topic, "g", "a")
		for _, stream := range []string{topic, a.Retry()} {
			groupAt(t, rdb, stream, "g", "0")
			require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: "7-7", Values: []string{"f:msg", "{}"}}).Err())
			readAs(t, rdb, stream, "g", "a", 1)
		}
		for want := 1; want < 3; want++ {
			for _, stream := range []string{topic, a.Retry()} {
				count, _, err := a.Fail(t.Context(), stream, "7-7", errors1)
				require.NoError(t, err)
				require.Equal(t, want, count)
			}
		}
		_, err := a.Ack(t.Context(), topic, []string{"7-7"})
		require.NoError(t, err)
		require.Len(t, failuresOf(t, rdb, topic), 1)
		count, _, err := a.Fail(t.Context(), a.Retry(), "7-7", errors1)
		require.NoError(t, err)
		require.Equal(t, 3, count)
		require.NoError(t, a.Bury(t.Context(), a.Retry(), "7-7", recovery.Letter{}))
		require.Empty(t, failuresOf(t, rdb, topic))
	})
}

func TestASweepForgetsFailuresOfWhatSomebodyElseAcknowledged(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic, ids := abandon(t, rdb, "a", 60)
		a := recovery.NewGroup(rdb, topic, "g", "a")
		for _, id := range ids {
			_, _, err := a.Fail(t.Context(), topic, id, fmt.Errorf("%s: %w", id, errors1))
			require.NoError(t, err)
		}
		require.NoError(t, rdb.XAck(t.Context(), topic, "g", ids[:15]...).Err(), "as a Kotlin peer does")
		lease(t, rdb, topic, "g", "a", time.Hour)
		g := alive(t, rdb, topic, "b")
		for range 10 { // some at a time
			sweep(t, g, topic, 0)
		}
		kept := failuresOf(t, rdb, topic)
		require.Len(t, kept, 45)
		for _, id := range ids[15:] {
			require.Contains(t, kept, id)
		}
	})
}
