package eventstore_test

import (
	"strconv"
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

// The other tests speak the third version of the protocol, the default of the client.
func TestSCR07_BothProtocolsAnswerAlike(t *testing.T) {
	t.Parallel()
	o := redistest.Shared(t).Options()
	require.NotEqual(t, 2, redistest.Shared(t).Client(t).Options().Protocol)
	o.Protocol = 2
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	newStore := func(_ *testing.T, types ...es.Types) *eventstore.Store {
		return eventstore.New(rdb, wire.JSON(types...))
	}
	t.Run("store", func(t *testing.T) { t.Parallel(); estest.TestEventStore(t, newStore) })
	t.Run("scanner", func(t *testing.T) { t.Parallel(); estest.TestScanner(t, newStore) })
	t.Run("outbox", func(t *testing.T) { t.Parallel(); estest.TestOutbox(t, newStore) })
}

func TestSCR07_ScriptsReturnTextsAndSmallIntegersOnly(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		o := redistest.Shared(t).Options()
		o.Protocol = protocol
		rdb := redis.NewClient(o)
		t.Cleanup(func() { _ = rdb.Close() })
		k := rediskey.EventKeys(newType().ID("a-1"))
		commit := func(version int, request, bytes string) any {
			keys := []string{k.Stream, k.Requests, k.Outbox, k.IDs, k.Purged}
			if version > 1 {
				keys = keys[:3]
			}
			return answer(t)(lua.AppendCommits.Run(t.Context(), rdb, keys, strconv.Itoa(version), k.Identity, k.Member, request, bytes))
		}
		move := func(from, through int) any {
			return answer(t)(lua.MoveNote.Run(t.Context(), rdb, []string{k.Outbox, k.Stream}, k.Identity, from, through))
		}
		purge := func(version int) any {
			keys := []string{k.Stream, k.Requests, k.IDs, k.Outbox, k.Purged}
			return answer(t)(lua.PurgeAggregate.Run(t.Context(), rdb, keys, version, k.Identity, k.Member, "1"))
		}
		require.Equal(t, []any{
			"version", int64(0), "ok", "same-ok", "version", "request", "noted", "same", int64(2), int64(2), int64(0), "version", "ok", "none", "purged",
		}, []any{
			commit(2, "r0", "0"), move(1, 1), commit(1, "r1", "1"), commit(1, "r1", "1"), commit(1, "r9", "9"), commit(2, "r1", "9"), commit(2, "r2", "2"),
			commit(2, "r2", "2"), move(1, 1), move(1, 1), move(2, 2), purge(1), purge(2), purge(2), commit(1, "r1", "1"),
		}, "protocol %d", protocol)
	}
}

func answer(t *testing.T) func(any, error) any {
	return func(reply any, err error) any {
		t.Helper()
		require.NoError(t, err)
		return reply
	}
}

func TestSCR08_ReadsWorkWhenMemoryIsFull(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	commits := commitsOf(typ.ID("a-1"), 1, 3)
	for _, c := range commits {
		_, err := s.Append(t.Context(), es.AppendOptions{Note: true}, c)
		require.NoError(t, err)
	}
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	requireStored(t, s, typ.ID("a-1"), commits...)
	_, err := s.FindRequest(t.Context(), typ.ID("a-1"), commits[0].RequestID)
	require.NoError(t, err)
	require.Equal(t, []string{"a-1"}, scan(t, s, typ))
	require.NoError(t, open(rdb, typ).Ready(t.Context(), typ))
	require.Len(t, collect(t, s.Unpublished(t.Context(), typ)), 1)
	_, err = s.Published(t.Context(), typ.ID("a-1"), 1, 2)
	require.ErrorIs(t, err, es.ErrOutOfMemory, "a note is moved in place, which is refused")
	require.Equal(t, []es.Note{{Aggregate: typ.ID("a-1"), Version: 1}}, collect(t, s.Unpublished(t.Context(), typ)), "and not lost")
	next, err := s.Published(t.Context(), typ.ID("a-1"), 1, 3)
	require.NoError(t, err, "removing one frees memory")
	require.Zero(t, next)
}
