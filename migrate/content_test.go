package migrate_test

import (
	"context"
	"errors"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/migrate"
	"github.com/headwater-go/headwater/preparekey"
	"github.com/headwater-go/headwater/wire"
)

// Reservations keep their ends to the millisecond, those that have ended too; leases and
// other keys with an end of their own are nobody's business.
func TestMIG01_ReservationsKeepTheirEnds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	soon := time.Now().Add(time.Hour).UnixMilli()
	keys := map[string]int64{"alice": forever, "bob@x:{1}": soon, "}{": forever + 7, "old": past, `"quoted"`: forever, "雪*": soon}
	for key, end := range keys {
		require.NoError(t, fixture.Reserve(ctx, s.rdb, key, `"u-`+key+`"`, end))
	}
	require.NoError(t, s.rdb.Set(ctx, "wow:redis:message-bus:consumer-lease:00", "t", time.Hour).Err())
	a, f := s.audit(), file(t)
	a.Names = names(t, "# the sets", "", "email\tbob*", "user name\t*", `quoted`+"\t"+`"\"quoted\""`)
	report, err := a.Run(ctx, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	require.Equal(t, []migrate.Line{{Era: "ABCD", Kind: "prepare", Keys: 6, Members: 12, Bytes: report.Inventory[0].Bytes}}, report.Inventory)
	require.Equal(t, int64(6), s.copy(t, f).Prepared)
	require.Equal(t, int64(6), s.verify(t, f).Prepared)
	r := s.finish(t, f)
	require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
	for key, end := range keys {
		name := map[string]string{"bob@x:{1}": "email", `"quoted"`: "quoted"}[key]
		if name == "" {
			name = "user name"
		}
		fields := s.rdb.HGetAll(ctx, rediskey.Prepare(name, key)).Val()
		require.Equal(t, map[string]string{"value": `"u-` + key + `"`, "ttlAt": strconv.FormatInt(end, 10)}, fields, key)
		require.Equal(t, time.Duration(-1), s.rdb.TTL(ctx, rediskey.Prepare(name, key)).Val())
	}
	users := preparekey.New[string](s.rdb, wire.JSON(), "user name")
	taken, err := users.Prepare(ctx, "alice", "me", 0)
	require.NoError(t, err)
	require.False(t, taken)
	require.Equal(t, int64(1), s.rdb.Exists(ctx, "wow:redis:message-bus:consumer-lease:00").Val())
}

func TestNamesFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"name", "\tkey", "name\t", "a\tk\nb\tk", "a\tk*\nb\tk*", "a\t\"k", "a\t\"k\"\nb\tk"} {
		_, err := migrate.ParseNames(strings.NewReader(text))
		require.ErrorIs(t, err, es.ErrInvalid, "%q", text)
	}
	_, err := migrate.ParseNames(strings.NewReader("a\tk\r\n"))
	require.NoError(t, err)
	_, err = migrate.ParseNames(broken{})
	require.ErrorContains(t, err, "torn")
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("torn") }

// A key with many members is read and written by pages, in memory that does not grow with it.
func TestMIG04_LargeKeyInBoundedMemory(t *testing.T) {
	// Alone, so that what lives is its own.
	if testing.Short() {
		t.Skip("it writes 50,000 commits")
	}
	const commits = 50_000
	s := newScene(t)
	ctx, id := t.Context(), s.typ.ID("large")
	require.NoError(t, fixture.Write(ctx, s.rdb, legacy.D, id, commits))
	live, peak := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, uint64(0)
	s.pace.Progress = func(migrate.Progress) {
		metrics.Read(live)
		peak = max(peak, live[0].Value.Uint64())
	}
	f := file(t)
	_, err := s.audit().Run(ctx, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, int64(commits), s.copy(t, f).Events)
	add(legacy.E, "one more", commits+1)(t, s, id)
	require.Equal(t, migrate.Blocked, s.verify(t, f).Outcome(), "a member that was added during the copy is found")
	require.NoError(t, s.rdb.ZRem(ctx, rediskey.Stream(id), "one more").Err())
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	r := s.finish(t, f)
	require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
	require.Equal(t, int64(commits), s.rdb.ZCard(ctx, rediskey.Stream(id)).Val())
	require.Less(t, peak, uint64(16<<20), "the documents alone are 22 MiB")
}

// The user's own code replays what was copied, all of it or a sample.
func TestVerifyReplays(t *testing.T) {
	t.Parallel()
	s, ids, f := audited(t, legacy.B)
	s.copy(t, f)
	store := eventstore.New(s.rdb, wire.JSON())
	var calls atomic.Int64
	v := migrate.Verify{Pace: s.pace, Replay: func(ctx context.Context, id es.AggregateID) error {
		calls.Add(1)
		for _, err := range store.Load(ctx, id, es.Versions{}) {
			if err != nil {
				return err
			}
		}
		if id == ids[3] {
			return errors.New("the new rules do not allow it")
		}
		return nil
	}}
	r, err := v.Run(t.Context(), s.rdb, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, map[migrate.Code]int{migrate.ReplayFailed: 1}, r.ByCode)
	require.Equal(t, int64(17), calls.Load())
	_, err = migrate.Finish{WritersStopped: true}.Run(t.Context(), s.rdb, s.rdb, f)
	require.ErrorIs(t, err, es.ErrInvalid)

	calls.Store(0)
	v.Sample = 5
	v.Replay = func(context.Context, es.AggregateID) error { calls.Add(1); return nil }
	r, err = v.Run(t.Context(), s.rdb, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, r.Outcome())
	require.Equal(t, int64(4), calls.Load())

	v.Replay = func(context.Context, es.AggregateID) error { return es.ErrUnavailable }
	r, err = v.Run(t.Context(), s.rdb, s.rdb, f)
	require.ErrorIs(t, err, es.ErrUnavailable)
	require.Equal(t, migrate.Unfinished, r.Outcome())
}

func TestAStepStopsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write(t, legacy.B)
	s.pace.Rate = 1 // 48 keys would take 48 s
	ctx, cancel := context.WithCancel(t.Context())
	s.pace.Progress = func(p migrate.Progress) {
		require.Equal(t, "audit", p.Step)
		cancel()
	}
	report, err := s.audit().Run(ctx, s.rdb, file(t))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, migrate.Unfinished, report.Outcome())
	require.Equal(t, 30*time.Second, migrate.Progress{Keys: 10, Of: 40, Elapsed: 10 * time.Second}.Left())
	require.Zero(t, migrate.Progress{Keys: 10, Of: 4, Elapsed: time.Second}.Left())
}
