package recovery_test

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// agedLetter writes a letter that failed last that long ago.
func agedLetter(t testing.TB, rdb redis.UniversalClient, topic, group string, reason recovery.Reason, replays int, ago time.Duration) string {
	t.Helper()
	id, err := rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: rediskey.DeadLetters(topic), Values: []string{
		"stream", topic, "entry", "7-7", "group", group, "reason", string(reason), "last", strconv.FormatInt(serverTime(t, rdb, -ago), 10),
		"replays", strconv.Itoa(replays), "origin", "3-3", "f:msg", "{}",
	}}).Result()
	require.NoError(t, err)
	return id
}

// scheduled runs the schedule until the test ends.
func scheduled(t *testing.T, rdb redis.UniversalClient, s recovery.Schedule) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- recovery.NewDeadLetters(rdb).ReplayOnSchedule(ctx, s) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestLettersAreReplayedWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		const h = time.Hour
		left := []string{
			agedLetter(t, rdb, topic, "g", recovery.Limit, 0, h/2),
			agedLetter(t, rdb, topic, "g", recovery.Limit, 3, 7*h),
			agedLetter(t, rdb, topic, "g", recovery.Permanent, 0, 100*h),
			agedLetter(t, rdb, topic, "g", recovery.Crashed, 0, 100*h),
			agedLetter(t, rdb, topic, "g", recovery.Limit, 10, 10_000*h),
			agedLetter(t, rdb, topic, "g", recovery.Limit, 1_000_000, 10_000*h),
		}
		agedLetter(t, rdb, topic, "g", recovery.Limit, 0, h+h/100)
		agedLetter(t, rdb, topic, "g", recovery.Limit, 3, 8*h+h/100)
		agedLetter(t, rdb, topic, "g", recovery.Limit, 9, 513*h)
		stop := scheduled(t, rdb, recovery.Schedule{Letters: recovery.LetterFilter{Topics: []string{topic}}, MinBackoff: h, Look: 10 * time.Millisecond})
		defer stop()
		require.Eventually(t, func() bool { return len(retriesOf(t, rdb, topic, "g")) == 3 }, patience, pause)
		agedLetter(t, rdb, topic, "g", recovery.Limit, 0, 2*h)
		require.Eventually(t, func() bool { return len(retriesOf(t, rdb, topic, "g")) == 4 }, patience, pause, "and at the next look")
		stop()
		require.Equal(t, left, idsIn(t, rdb, rediskey.DeadLetters(topic)))
		var replays []int
		for _, f := range retriesOf(t, rdb, topic, "g") {
			_, n, _, err := recovery.ReadRetry(f)
			require.NoError(t, err)
			replays = append(replays, n)
		}
		require.Equal(t, []int{1, 4, 10, 1}, replays)
	})
}

func TestTwoSchedulesReplayALetterOnce(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	const n = 60
	for range n {
		agedLetter(t, rdb, topic, "g", recovery.Limit, 0, time.Hour)
	}
	var log bytes.Buffer
	s := recovery.Schedule{
		Letters: recovery.LetterFilter{Topics: []string{topic}}, Look: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	stop, stopOther := scheduled(t, rdb, s), scheduled(t, rdb, s)
	defer stop()
	defer stopOther()
	require.Eventually(t, func() bool { return rdb.XLen(t.Context(), rediskey.DeadLetters(topic)).Val() == 0 }, patience, pause)
	require.Len(t, retriesOf(t, rdb, topic, "g"), n)
	stop()
	stopOther()
	require.Empty(t, log.String(), "being second is no failure")
}

func TestALetterThatCannotBeReplayedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	groupAt(t, rdb, topic, "g", "0")
	gone := agedLetter(t, rdb, topic, "gone", recovery.Limit, 0, time.Hour)
	agedLetter(t, rdb, topic, "g", recovery.Limit, 0, time.Hour)
	lines := make(chan string, 100)
	stop := scheduled(t, rdb, recovery.Schedule{Letters: recovery.LetterFilter{Topics: []string{topic}}, Logger: slog.New(slog.NewTextHandler(writer(lines), nil))})
	defer stop()
	line := <-lines
	require.Contains(t, line, "letters=1")
	require.Contains(t, line, gone)
	stop()
	require.Equal(t, []string{gone}, idsIn(t, rdb, rediskey.DeadLetters(topic)))
	require.Len(t, retriesOf(t, rdb, topic, "g"), 1)
}

type writer chan<- string

func (w writer) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

func TestASchedulesReplayIsTheCallers(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	topic := freshTopic()
	id := agedLetter(t, rdb, topic, "g", recovery.Undecodable, 0, time.Hour)
	got := make(chan recovery.Letter, 1)
	defer scheduled(t, rdb, recovery.Schedule{
		Letters: recovery.LetterFilter{Topics: []string{topic}, Reason: recovery.Undecodable},
		Replay:  func(_ context.Context, l recovery.Letter) (string, error) { got <- l; return "", nil },
	})()
	l := <-got
	require.Equal(t, id, l.ID)
	require.Equal(t, recovery.Fields{"msg", "{}"}, l.Fields)
}

func TestSchedulesThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	d := recovery.NewDeadLetters(redistest.Shared(t).Client(t))
	for _, s := range []recovery.Schedule{{MinBackoff: -1}, {MaxReplays: -1}, {Look: -1}} {
		require.ErrorIs(t, d.ReplayOnSchedule(t.Context(), s), es.ErrInvalid)
	}
}
