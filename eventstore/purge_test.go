package eventstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/wire"
)

func TestSTO11_AHugeSetOfRequestsIsGivenBackInTheBackground(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	id := typ.ID("a-1")
	add(t, s, commitOf(id, 1))
	many := make([]any, 20_000)
	for i := range many {
		many[i] = fmt.Sprintf("%036d", i)
	}
	require.NoError(t, rdb.SAdd(t.Context(), rediskey.EventKeys(id).Requests, many...).Err())
	require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
	require.NoError(t, s.Purge(t.Context(), id, 1, eventstore.PurgeOptions{}))
	require.Empty(t, traces(t, rdb, id))
	stats := rdb.Info(t.Context(), "commandstats").Val()
	require.Contains(t, stats, "cmdstat_unlink:")
	require.NotContains(t, stats, "cmdstat_del:")
}

func TestSTO12_APurgedAggregateLeavesNothingToItsNextLife(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		s := open(rdb, typ)
		id, neighbour := typ.ID("Aa"), typ.ID("BB") // of one bucket
		first, theirs := commitsOf(id, 1, 10), commitOf(neighbour, 1)
		for _, c := range append(first, theirs) {
			_, err := s.Append(t.Context(), es.AppendOptions{Note: true}, c)
			require.NoError(t, err)
			require.NoError(t, rdb.Set(t.Context(), rediskey.Snapshot(c.Aggregate), "a snapshot", 0).Err())
		}
		require.ErrorIs(t, s.Purge(t.Context(), id, 9, eventstore.PurgeOptions{}), es.ErrVersionConflict)
		require.NotNil(t, content(t, rdb, rediskey.Snapshot(id)), "a refused purge takes nothing")
		require.ErrorIs(t, s.Purge(t.Context(), typ.ID("nobody"), 1, eventstore.PurgeOptions{}), es.ErrNotFound)
		requireStored(t, s, id, first...)

		require.NoError(t, s.Purge(t.Context(), id, 10, eventstore.PurgeOptions{}))
		require.Nil(t, content(t, rdb, rediskey.EventKeys(id).Stream))
		require.Nil(t, content(t, rdb, rediskey.EventKeys(id).Requests))
		require.Nil(t, content(t, rdb, rediskey.Snapshot(id)))
		require.Equal(t, []es.Note{{Aggregate: neighbour, Version: 1}}, collect(t, s.Unpublished(t.Context(), typ)))
		require.Equal(t, []string{"BB"}, scan(t, s, typ))
		require.NotNil(t, content(t, rdb, rediskey.Snapshot(neighbour)))
		requireStored(t, s, neighbour, theirs)

		second := commitsOf(id, 1, 3)
		for i := range second {
			second[i].RequestID = first[i].RequestID // free again, as Purge says
		}
		for _, store := range []*eventstore.Store{s, open(rdb, typ)} { // the one that knew the first life, and a fresh one
			_, err := store.Append(t.Context(), es.AppendOptions{}, second...)
			require.NoError(t, err)
			requireStored(t, store, id, second...)
		}
	})
}

func TestSTO12_ATombstoneKeepsTheId(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		s := open(rdb, typ)
		id := typ.ID("a-1")
		add(t, s, commitsOf(id, 1, 2)...)
		require.NoError(t, s.Purge(t.Context(), id, 2, eventstore.PurgeOptions{Tombstone: true}))
		k := rediskey.EventKeys(id)
		require.Equal(t, map[string]any{
			"ids":    []scored{{0, k.Member}},
			"purged": map[string]string{k.Member: "2"},
		}, traces(t, rdb, id))
		for version := 1; version <= 3; version++ {
			require.Error(t, appendOne(t, s, commitOf(id, version)))
		}
		require.ErrorIs(t, appendOne(t, s, commitOf(id, 1)), es.ErrDuplicateAggregate)
		require.ErrorIs(t, appendOne(t, s, commitOf(id.InTenant("t-2"), 1)), es.ErrDuplicateAggregate)
		require.ErrorIs(t, s.Purge(t.Context(), id, 2, eventstore.PurgeOptions{}), es.ErrNotFound)
		require.Empty(t, collect(t, s.Load(t.Context(), id, es.Versions{})))
	})
}

// saver saves a snapshot just before the script of a purge.
type saver struct {
	rdb redis.Cmdable
	key string
}

func (saver) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s saver) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "evalsha" && args[1] == lua.PurgeAggregate.Hash() {
			if err := s.rdb.Set(ctx, s.key, "late", 0).Err(); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

func (saver) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestSTO12_ASnapshotThatIsSavedMeanwhileGoesToo(t *testing.T) {
	t.Parallel()
	plain, rdb := redistest.Shared(t).Client(t), redistest.Shared(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	id := typ.ID("a-1")
	add(t, s, commitOf(id, 1))
	rdb.AddHook(saver{plain, rediskey.Snapshot(id)})
	require.NoError(t, s.Purge(t.Context(), id, 1, eventstore.PurgeOptions{}))
	require.Nil(t, content(t, plain, rediskey.Snapshot(id)))
}

func TestKEY05_NothingDoneInOneTenantTouchesAnother(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	mine, theirs := typ.ID("1").InTenant("t1"), typ.ID("1").InTenant("t2")
	commits := commitsOf(mine, 1, 2)
	_, err := s.Append(t.Context(), es.AppendOptions{Note: true}, commits...)
	require.NoError(t, err)
	require.NoError(t, rdb.Set(t.Context(), rediskey.Snapshot(mine), "a snapshot", 0).Err())
	before := traces(t, rdb, mine)
	for _, tombstone := range []bool{false, true} {
		require.ErrorIs(t, s.Purge(t.Context(), theirs, 2, eventstore.PurgeOptions{Tombstone: tombstone}), es.ErrNotFound)
	}
	next, err := s.Published(t.Context(), theirs, 1, 2)
	require.NoError(t, err)
	require.Zero(t, next)
	known, err := s.HasRequest(t.Context(), theirs, commits[0].RequestID)
	require.NoError(t, err)
	require.False(t, known)
	require.Equal(t, before, traces(t, rdb, mine))
	require.NotNil(t, content(t, rdb, rediskey.Snapshot(mine)))

	require.NoError(t, s.Purge(t.Context(), mine, 2, eventstore.PurgeOptions{}))
	require.NoError(t, appendOne(t, s, commitOf(theirs, 1)), "the id is free, for whoever comes")
}

func TestAPurgeWhoseReplyWasLostIsDone(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	proxy := redistest.NewProxy(t, server.Addr)
	through := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { _ = through.Close() })
	typ := newType()
	s, id := open(through, typ), typ.ID("1")
	require.NoError(t, appendOne(t, s, commitOf(id, 1)))
	require.NoError(t, s.Purge(t.Context(), typ.ID("1"), 1, eventstore.PurgeOptions{Tombstone: true})) // loads the script
	other := typ.ID("2")
	require.NoError(t, appendOne(t, s, commitOf(other, 1)))
	proxy.DropReply("EVALSHA " + lua.PurgeAggregate.Hash())
	require.NoError(t, s.Purge(t.Context(), other, 1, eventstore.PurgeOptions{}))
	require.Empty(t, collect(t, s.Load(t.Context(), other, es.Versions{})))
	require.NoError(t, appendOne(t, s, commitOf(other, 1)), "the id is free")
}

func TestBytesThatAreNoNoteHideNoOther(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	for i := range 20 {
		_, err := s.Append(t.Context(), es.AppendOptions{Note: true}, commitOf(typ.ID(strconv.Itoa(i)), 1))
		require.NoError(t, err)
	}
	require.NoError(t, rdb.ZAdd(t.Context(), rediskey.Outbox(typ, 0), redis.Z{Score: 1, Member: "garbage"}).Err())
	require.NoError(t, rdb.ZAdd(t.Context(), rediskey.Index(typ, 0), redis.Z{Member: "garbage"}).Err())
	notes, ids, corrupt := 0, 0, 0
	for _, err := range s.Unpublished(t.Context(), typ) {
		if err != nil {
			require.ErrorIs(t, err, es.ErrCorrupt)
			corrupt++
			continue
		}
		notes++
	}
	for _, err := range s.Scan(t.Context(), typ, "") {
		if err != nil {
			require.ErrorIs(t, err, es.ErrCorrupt)
			corrupt++
			continue
		}
		ids++
	}
	require.Equal(t, []int{20, 20, 2}, []int{notes, ids, corrupt})
}

type explosive struct{ At int }

func (explosive) EventName() string { return "explosive" }

func (e *explosive) UnmarshalJSON(b []byte) error {
	if string(b) == `{"At":90}` {
		panic("boom")
	}
	type plain explosive
	return json.Unmarshal(b, (*plain)(e))
}

func TestAPanicWhileDecodingIsAnError(t *testing.T) {
	t.Parallel()
	typ := newType()
	s := eventstore.New(redistest.Shared(t).Client(t), wire.JSON(es.Types{Aggregate: typ, Events: []es.Type{{Body: explosive{}}}}))
	id := typ.ID("1")
	for v := 1; v <= 150; v++ {
		c := commitOf(id, v)
		c.Events = []es.Event{es.NewEvent(fmt.Sprint("e-", v), explosive{At: v})}
		require.NoError(t, appendOne(t, s, c))
	}
	got := 0
	for _, err := range s.Load(t.Context(), id, es.Versions{}) {
		if err != nil {
			require.ErrorIs(t, err, es.ErrPanic)
			break
		}
		got++
	}
	require.Equal(t, 89, got)
}
