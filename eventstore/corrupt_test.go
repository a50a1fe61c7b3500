package eventstore_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/wire"
)

// byHand stores commits of these versions, as a repair by hand may leave them.
func byHand(t *testing.T, rdb redis.Cmdable, id es.AggregateID, versions ...int) {
	t.Helper()
	codec := wire.JSON(estest.TypesOf(id.Type))
	k := rediskey.EventKeys(id)
	for _, version := range versions {
		c := commitOf(id, version)
		document, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		require.NoError(t, rdb.ZAdd(t.Context(), k.Stream, redis.Z{Score: float64(version), Member: string(document)}).Err())
		require.NoError(t, rdb.SAdd(t.Context(), k.Requests, c.RequestID).Err())
	}
	require.NoError(t, rdb.ZAdd(t.Context(), k.IDs, redis.Z{Member: k.Member}).Err())
}

func TestSTO06_ACountThatDisagreesWithTheVersionsIsCorrupt(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		s := open(rdb, typ)
		for name, versions := range map[string][]int{"2": {2}, "2 3": {2, 3}, "1 3": {1, 3}, "1 2 2": {1, 2, 2}, "1 2 4 5": {1, 2, 4, 5}} {
			id := typ.ID(name)
			byHand(t, rdb, id, versions...)
			before := traces(t, rdb, id)
			for version := 1; version <= 7; version++ {
				if name == "1 2 2" && version == 4 {
					continue // see TestSTO06_TwoCommitsOfOneVersionAreSeenWhenLoading
				}
				for _, o := range []es.AppendOptions{{}, {Note: true}} {
					_, err := s.Append(t.Context(), o, commitsOf(id, version, 2)...)
					require.ErrorIs(t, err, es.ErrCorrupt, "version %d after %s", version, name)
				}
			}
			require.Equal(t, before, traces(t, rdb, id))
			_, err := outcome(s.Load(t.Context(), id, es.Versions{}))
			require.ErrorIs(t, err, es.ErrCorrupt, name)
		}
	})
}

// The counts fit {2, 2'} followed by 3, and {1, 2, 2'} followed by 4: nobody who loads,
// or goes on from a snapshot, comes to append there.
func TestSTO06_TwoCommitsOfOneVersionAreSeenWhenLoading(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	for name, versions := range map[string][]int{"2 2": {2, 2}, "1 2 2": {1, 2, 2}} {
		byHand(t, rdb, typ.ID(name), versions...)
		_, err := outcome(s.Load(t.Context(), typ.ID(name), es.Versions{}))
		require.ErrorIs(t, err, es.ErrCorrupt)
		_, err = s.Find(t.Context(), typ.ID(name), 2)
		require.ErrorIs(t, err, es.ErrCorrupt)
	}
}

func TestSTO06_AStreamWithoutItsIndexEntryGoesOn(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	commits := commitsOf(typ.ID("a-1"), 1, 3)
	add(t, s, commits[:2]...)
	require.NoError(t, rdb.Del(t.Context(), rediskey.EventKeys(typ.ID("a-1")).IDs).Err())
	require.ErrorIs(t, appendOne(t, s, commitOf(typ.ID("a-1"), 1)), es.ErrVersionConflict)
	add(t, s, commits[2])
	requireStored(t, s, typ.ID("a-1"), commits...)
}

// A gap is never the end of the stream, wherever a page or the range ends.
func TestSTO13_AGapIsCorrupt(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		s := open(rdb, typ)
		late, gap := typ.ID("from 600 on"), typ.ID("101 to 250 are missing")
		byHand(t, rdb, late, 600, 601)
		for version := range 260 {
			if version < 100 || version >= 250 {
				byHand(t, rdb, gap, version+1)
			}
		}
		for _, c := range []struct {
			id   es.AggregateID
			r    es.Versions
			seen int
		}{
			{late, es.Versions{}, 0}, {late, es.Versions{To: 10}, 0}, {late, es.Versions{From: 599}, 0}, {late, es.Versions{From: 5, To: 5}, 0},
			{gap, es.Versions{}, 100}, {gap, es.Versions{From: 100}, 1}, {gap, es.Versions{From: 101}, 0}, {gap, es.Versions{To: 101}, 100},
			{gap, es.Versions{From: 90, To: 150}, 11}, {gap, es.Versions{From: 101, To: 250}, 0}, {gap, es.Versions{From: 101, To: 251}, 0},
		} {
			got, err := outcome(s.Load(t.Context(), c.id, c.r))
			require.ErrorIs(t, err, es.ErrCorrupt, "%s, %+v", c.id.ID, c.r)
			require.Len(t, got, c.seen)
			var at *es.Error
			require.ErrorAs(t, err, &at)
			require.Equal(t, max(c.r.From, 1)+c.seen, at.Version, "it names the version that is missing")
		}
		for version, found := range map[int]bool{100: true, 101: false, 250: false, 251: true} {
			_, err := s.Find(t.Context(), gap, version)
			if found {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, es.ErrCorrupt, "version %d", version)
			}
		}
		require.Len(t, collect(t, s.Load(t.Context(), gap, es.Versions{To: 100})), 100)
		require.Len(t, collect(t, s.Load(t.Context(), gap, es.Versions{From: 251, To: 300})), 10)
	})
}

func TestSTO07_VersionsBeyondTheLimitOfScoresAreRefused(t *testing.T) {
	t.Parallel()
	s := open(redistest.Shared(t).Client(t), newType())
	id := newType().ID("a-1")
	for _, version := range []int{es.MaxVersion + 1, 1<<53 - 2, 1 << 53, 1<<53 + 1} {
		require.ErrorIs(t, appendOne(t, s, commitOf(id, version)), es.ErrInvalid)
	}
}

func TestSTO08_TheScriptTakesPlainPositiveVersionsOnly(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		id := newType().ID("a-1")
		k := rediskey.EventKeys(id)
		for _, version := range []string{"0", "-1", "", "abc", "1.5", "1.0", "0x1", "1e0", "01", "+1", " 1", "1 ", "1\n", "\x00", "1\x00", "nan", "inf", "99999999999", "１"} {
			for _, identity := range []string{"", k.Identity} {
				keys := []string{k.Stream, k.Requests, k.IDs, k.Purged}
				if identity != "" {
					keys = []string{k.Stream, k.Requests, k.Outbox, k.IDs, k.Purged}
				}
				answer, err := lua.AppendCommits.Run(t.Context(), rdb, keys, version, identity, k.Member, "r-1", "{}")
				require.NoError(t, err)
				require.Equal(t, "argument", answer, "%q", version)
			}
		}
		require.Empty(t, traces(t, rdb, id))
		answer, err := lua.AppendCommits.Run(t.Context(), rdb, []string{k.Stream, k.Requests, k.IDs, k.Purged}, "1", "", k.Member, "r-1", "{}")
		require.NoError(t, err)
		require.Equal(t, "ok", answer, "the request id was not used up")
	})
}

// Documents of another aggregate, or of nobody, under an aggregate's key.
func TestReadsNameAForeignDocument(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	id, other := typ.ID("a-1"), typ.ID("a-2")
	add(t, s, commitOf(other, 1))
	theirs := content(t, rdb, rediskey.EventKeys(other).Stream).([]scored)[0]
	k := rediskey.EventKeys(id)
	require.NoError(t, rdb.ZAdd(t.Context(), k.Stream, redis.Z{Score: 1, Member: theirs.Member}).Err())
	require.NoError(t, rdb.SAdd(t.Context(), k.Requests, "r").Err())
	requireReads(t, s, id, es.ErrCorrupt)

	packed := eventstore.New(rdb, wire.MessagePack(estest.TypesOf(typ)))
	requireReads(t, packed, other, es.ErrWrongFormat)
}

// requireReads says that every read of the aggregate's only commit ends with kind.
func requireReads(t *testing.T, s *eventstore.Store, id es.AggregateID, kinds ...error) {
	t.Helper()
	_, loaded := outcome(s.Load(t.Context(), id, es.Versions{}))
	_, last := s.Last(t.Context(), id)
	_, found := s.Find(t.Context(), id, 1)
	for _, err := range []error{loaded, last, found} {
		require.True(t, slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }), "%v", err)
	}
}
