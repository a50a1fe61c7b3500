package eventstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
)

// What the store offers beyond the interfaces, which the suites do not know.

func TestLoadAtEndsBeforeTheFirstLaterCommit(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	id := typ.ID("a-1")
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	commits := commitsOf(id, 1, 4)
	for i, minute := range []int{10, 30, 20, 40} { // the third writer's clock is late
		commits[i].CreateTime = at(minute)
	}
	add(t, s, commits...)
	for minute, want := range map[int]int{9: 0, 10: 1, 15: 1, 20: 1, 29: 1, 30: 3, 39: 3, 40: 4, 50: 4} {
		got := collect(t, s.LoadAt(t.Context(), id, at(minute)))
		require.Equal(t, commitIDs(commits[:want]), commitIDs(got), "minute %d", minute)
	}
	require.Empty(t, collect(t, s.LoadAt(t.Context(), typ.ID("nobody"), at(50))))

	require.NoError(t, rdb.ZAdd(t.Context(), rediskey.EventKeys(id).Stream, redis.Z{Score: 5, Member: "not-json"}).Err())
	_, err := outcome(s.LoadAt(t.Context(), id, at(9)))
	require.NoError(t, err, "what comes later is not looked at")
	got, err := outcome(s.LoadAt(t.Context(), id, at(50)))
	require.ErrorIs(t, err, es.ErrCorrupt)
	require.Len(t, got, 4)
}

func TestMaxBytesIsTheLimitOfEachCommit(t *testing.T) {
	t.Parallel()
	typ := newType()
	s := open(redistest.Shared(t).Client(t), typ)
	commits := commitsOf(typ.ID("a-1"), 1, 3)
	add(t, s, commits[0])
	length := len(content(t, redistest.Shared(t).Client(t), rediskey.EventKeys(typ.ID("a-1")).Stream).([]scored)[0].Member)
	s.MaxBytes = length
	add(t, s, commits[1])
	s.MaxBytes = length - 1
	for _, batch := range [][]es.Commit{commits[2:], commitsOf(typ.ID("a-1"), 3, 2)} {
		_, err := s.Append(t.Context(), es.AppendOptions{}, batch...)
		require.ErrorIs(t, err, es.ErrTooLarge)
	}
	requireStored(t, s, typ.ID("a-1"), commits[:2]...)
}

func TestARequestThatIsKnownAndNowhereFoundIsCorrupt(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	c := commitOf(typ.ID("a-1"), 1)
	add(t, s, c)
	require.NoError(t, rdb.SAdd(t.Context(), rediskey.EventKeys(c.Aggregate).Requests, "lost").Err())
	known, err := s.HasRequest(t.Context(), c.Aggregate, "lost")
	require.NoError(t, err)
	require.True(t, known)
	_, err = s.FindRequest(t.Context(), c.Aggregate, "lost")
	require.ErrorIs(t, err, es.ErrCorrupt)
	_, err = s.HasRequest(t.Context(), typ.ID(""), "r")
	require.ErrorIs(t, err, es.ErrInvalid)
}
