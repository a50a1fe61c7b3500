package recovery_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// witness keeps what it is told, and panics then.
type witness struct {
	mu  sync.Mutex
	all []es.Observation
}

func (w *witness) Observe(_ context.Context, o es.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, o)
	panic("observer")
}

func TestALeaseThatRanOutIsObserved(t *testing.T) {
	t.Parallel()
	rdb, w := redistest.Shared(t).Client(t), &witness{}
	g := recovery.NewGroup(rdb, "observed.lease:event", "g", "c")
	g.Observer = w
	require.NoError(t, g.Renew(t.Context()))
	require.NoError(t, g.Renew(t.Context()))
	require.Empty(t, w.all, "it was renewed in time")
	require.NoError(t, rdb.ZAdd(t.Context(), "{observed.lease:event}:lease:g", redis.Z{Member: "c", Score: 1}).Err())
	require.NoError(t, g.Renew(t.Context()))
	require.Equal(t, []es.Observation{es.LeaseLost{Topic: "observed.lease:event", Group: "g", Consumer: "c"}}, w.all)
}

func TestTrimmingIsObserved(t *testing.T) {
	t.Parallel()
	rdb, w, topic := redistest.Shared(t).Client(t), &witness{}, "observed.trim:event"
	var ids []string
	for range 4 {
		id, err := rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: []string{"msg", "x"}}).Result()
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.NoError(t, rdb.XGroupCreate(t.Context(), topic, "g", ids[1]).Err())
	trimmed, err := recovery.Trim(t.Context(), rdb, topic, recovery.TrimOptions{MaxLen: 1, Observer: w})
	require.NoError(t, err)
	require.EqualValues(t, 2, trimmed.Removed)
	require.Equal(t, []es.Observation{es.Trimmed{Topic: topic, Removed: 2, HeldBack: []string{"g"}}}, w.all)
}

func TestReplayAndExpiryOfLettersAreObserved(t *testing.T) {
	t.Parallel()
	rdb, w, topic := redistest.Shared(t).Client(t), &witness{}, "observed.letters:event"
	require.NoError(t, rdb.XGroupCreateMkStream(t.Context(), topic, "g", "0").Err())
	require.NoError(t, recovery.Register(t.Context(), rdb, topic))
	for range 2 {
		require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: []string{"msg", "x"}}).Err())
	}
	read, err := rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{topic, ">"}, Block: -1}).Result()
	require.NoError(t, err)
	g := recovery.NewGroup(rdb, topic, "g", "c")
	for _, m := range read[0].Messages {
		require.NoError(t, g.Bury(t.Context(), topic, m.ID, recovery.Letter{Reason: recovery.Limit, Error: "no", Attempts: 1}))
	}
	d := recovery.NewDeadLetters(rdb)
	d.Observer = w
	var letters []recovery.Letter
	for l, err := range d.List(t.Context(), recovery.LetterFilter{Topics: []string{topic}}, recovery.Letter{}) {
		require.NoError(t, err)
		letters = append(letters, l)
	}
	_, err = d.Replay(t.Context(), topic, letters[0].ID)
	require.NoError(t, err)
	require.Equal(t, es.Replayed{Topic: topic, Group: "g", Letter: letters[0].ID}, w.all[0])
	require.Eventually(t, func() bool {
		gone, err := d.Expire(t.Context(), recovery.Retention{MaxAge: time.Millisecond}, topic)
		return err == nil && len(gone) == 1
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, es.LettersExpired{Topic: topic, TooOld: 1}, w.all[1])
}
