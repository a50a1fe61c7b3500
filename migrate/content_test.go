package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
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

// Keys that only begin alike, or look alike, are as they were after everything.
func TestLookAlikesAreNeverTouched(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx, before := t.Context(), map[string]string{}
	stem := s.typ.String()
	for key, write := range map[string]func(key string) error{
		stem + "s:es:{a@b}":          func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "x"}).Err() },
		stem + ".x:es:{a@b}":         func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "x"}).Err() },
		"my." + stem + ":es:req_idx": func(k string) error { return s.rdb.SAdd(ctx, k, "x").Err() },
		stem + ":es:{a}":             func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "x"}).Err() },
		stem + ":es:{text@b}":        func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "no JSON"}).Err() },
		stem + ":es:{json@b}":        func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: `{"a":1}`}).Err() },
		stem + ":snapshot:{mine}":    func(k string) error { return s.rdb.Set(ctx, k, "picture", 0).Err() },
		"{" + stem + ":es:128}:a@b":  func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "x"}).Err() },
		"prepare:{cake}":             func(k string) error { return s.rdb.HSet(ctx, k, "flour", "1").Err() },
		"prepare:cake":               func(k string) error { return s.rdb.HSet(ctx, k, "flour", "1").Err() },
		stem + ":event": func(k string) error {
			return s.rdb.XAdd(ctx, &redis.XAddArgs{Stream: k, Values: []any{"msg", "{}"}}).Err()
		},
		"v2:snapshot:{eA.eQ.eg.KDAp}": func(k string) error { return s.rdb.Set(ctx, k, "x", 0).Err() },
	} {
		require.NoError(t, write(key))
		before[key] = s.rdb.Dump(ctx, key).Val()
	}
	s.write(t, legacy.C)
	f := file(t)
	report, err := s.audit().Run(ctx, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	require.Equal(t, map[migrate.Code]int{migrate.Foreign: 4, migrate.LookAlike: 3, migrate.OtherType: 3}, report.ByCode, "%v", report.Problems)
	s.copy(t, f)
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	r := s.finish(t, f)
	require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
	for key, dump := range before {
		require.Equal(t, dump, s.rdb.Dump(ctx, key).Val(), key)
	}
	left := s.rdb.Keys(ctx, "*").Val()
	require.Len(t, left, len(before)+1+4*17-distinct(t, left), "nothing else is left but the canonical keys and the marker: %v", left)
}

// distinct is how many index keys 17 aggregates share.
func distinct(t *testing.T, keys []string) (shared int) {
	t.Helper()
	shared = 17
	for _, key := range keys {
		if strings.HasSuffix(key, "}:ids") && strings.HasPrefix(key, "{v2:") {
			shared--
		}
	}
	return shared
}

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

// What the operator accepted is left out of the copy. Commits that have no copy are kept.
func TestAcceptedProblemsAreLeftOut(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx, good, bad := t.Context(), s.typ.ID("good"), s.typ.ID("bad")
	for _, id := range []es.AggregateID{good, bad} {
		require.NoError(t, fixture.Write(ctx, s.rdb, legacy.A, id, 3))
	}
	k := fixture.KeysOf(legacy.A, bad)
	require.NoError(t, s.rdb.ZRemRangeByScore(ctx, k.Events, "1", "1").Err())
	require.NoError(t, s.rdb.SRem(ctx, k.Requests, fixture.RequestID(bad, 1)).Err())
	snap(legacy.A, "nobody", "nobody", 1)(t, s, bad)
	require.NoError(t, fixture.Reserve(ctx, s.rdb, "alice", `"u"`, forever))
	a, f := s.audit(), file(t)
	a.Accept = []migrate.Code{migrate.Gap, migrate.OrphanSnapshot, migrate.PrepareWithoutName}
	report, err := a.Run(ctx, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	r := s.copy(t, f)
	require.Equal(t, []int64{1, 3, 2, 0, 4}, []int64{r.Aggregates, r.Events, r.Snapshots, r.Prepared, r.Left})
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	r = s.finish(t, f)
	require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
	require.Equal(t, int64(2), s.rdb.Exists(ctx, k.Events, k.Requests).Val())
	require.Zero(t, s.rdb.Exists(ctx, rediskey.Stream(bad), "prepare:{alice}", fixture.KeysOf(legacy.A, good).Events).Val())
}

// A manifest with problems is not copied, and says why not.
func TestBlockedManifestIsNotCopied(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	require.NoError(t, fixture.Write(t.Context(), s.rdb, legacy.C, s.typ.ID("o"), 2))
	request(legacy.C, "lost")(t, s, s.typ.ID("o"))
	f := file(t)
	report, err := s.audit().Run(t.Context(), s.rdb, f)
	require.NoError(t, err)
	r := s.copy(t, f)
	require.Equal(t, migrate.Blocked, r.Outcome())
	require.Equal(t, report.Problems, r.Problems)
	require.Zero(t, s.rdb.Exists(t.Context(), rediskey.Stream(s.typ.ID("o"))).Val())
}

// A store that went through an upgrade from era B to C: neither set is whole alone.
func TestUpgradedStoreHasBothSets(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx, id, young := t.Context(), s.typ.ID("old"), s.typ.ID("young")
	commit := func(era legacy.Eras, id es.AggregateID, v int) {
		require.NoError(t, fixture.Put(ctx, s.rdb, era, id, []redis.Z{{Score: float64(v), Member: fixture.Commit(era, id, v, "{}")}}, []any{fixture.RequestID(id, v)}))
	}
	commit(legacy.B, id, 1)
	commit(legacy.C, id, 2)
	commit(legacy.C, young, 1)
	f := file(t)
	report, err := s.audit().Run(ctx, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome())
	require.Empty(t, report.Problems.Problems)
	var eras []string
	for _, l := range report.Inventory {
		eras = append(eras, fmt.Sprint(l.Era, " ", l.Kind, " ", l.Members))
	}
	require.Equal(t, []string{"B requests 1", "BC events 2", "C events 1", "C shared requests 2"}, eras)
	s.copy(t, f)
	require.ElementsMatch(t, []string{fixture.RequestID(id, 1), fixture.RequestID(id, 2)}, s.rdb.SMembers(ctx, rediskey.Requests(id)).Val())

	require.NoError(t, s.rdb.SAdd(ctx, fixture.KeysOf(legacy.C, id).Requests, "lost").Err())
	require.NoError(t, s.rdb.SRem(ctx, fixture.KeysOf(legacy.C, id).Requests, fixture.RequestID(young, 1)).Err())
	report, err = s.audit().Run(ctx, s.rdb, nil)
	require.NoError(t, err)
	require.Equal(t, map[migrate.Code]int{migrate.RequestWithoutEvent: 1, migrate.EventWithoutRequest: 1, migrate.CanonicalPresent: 1}, report.ByCode)
}

// Era A may have written the context's name where later ones wrote its alias.
func TestTypesSayWhichAliasEraAMeant(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	then := es.AggregateType{Context: s.typ.Context, Name: s.typ.Name}
	require.NoError(t, fixture.Write(t.Context(), s.rdb, legacy.A, then.ID("o@1"), 2))
	f := file(t)
	report, err := s.audit().Run(t.Context(), s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	require.Equal(t, []es.AggregateType{s.typ}, report.Types)
	s.copy(t, f)
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	require.Equal(t, int64(2), s.rdb.ZCard(t.Context(), rediskey.Stream(s.typ.ID("o@1"))).Val())
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
