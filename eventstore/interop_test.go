package eventstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

func TestWowsWriterAndOursTakeTurnsOnOneAggregate(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, oursBegins := range []bool{true, false} {
			typ := newType()
			codec := wire.JSON(estest.TypesOf(typ))
			s := eventstore.New(rdb, codec)
			id := typ.ID("订单-😀").InTenant("t-1")
			commits := commitsOf(id, 1, 10)
			for i, c := range commits {
				if (i%2 == 0) == oursBegins {
					_, err := s.Append(t.Context(), es.AppendOptions{Note: true}, c)
					require.NoError(t, err)
				} else {
					require.Equal(t, "Ok", wowAppends(t, rdb, codec, c))
				}
				requireEveryWriterSees(t, rdb, s, codec, commits[:i+1])
			}
			require.Equal(t, []string{id.ID}, scan(t, s, typ))
			for _, c := range commits {
				found, err := s.FindRequest(t.Context(), id, c.RequestID)
				require.NoError(t, err)
				require.Equal(t, c.ID, found.ID)
			}
		}
	})
}

// requireEveryWriterSees says that both writers refuse whatever does not follow commits.
func requireEveryWriterSees(t *testing.T, rdb redis.UniversalClient, s *eventstore.Store, codec es.Codec, commits []es.Commit) {
	t.Helper()
	newest := commits[len(commits)-1]
	id := newest.Aggregate
	requireStored(t, s, id, commits...)

	done, err := s.Append(t.Context(), es.AppendOptions{}, newest)
	require.NoError(t, err)
	require.True(t, done.Same, "whoever wrote it")
	require.Equal(t, "EventVersionConflict", wowAppends(t, rdb, codec, newest))

	late, known := commitOf(id, newest.Version), commitOf(id, newest.Version+1)
	known.RequestID = commits[0].RequestID
	require.ErrorIs(t, appendOne(t, s, late), es.ErrVersionConflict)
	require.Equal(t, "EventVersionConflict", wowAppends(t, rdb, codec, late))
	require.ErrorIs(t, appendOne(t, s, known), es.ErrDuplicateRequest)
	require.Equal(t, "DuplicateRequestId", wowAppends(t, rdb, codec, known))

	other := commitOf(id.InTenant("t-2"), 1)
	require.ErrorIs(t, appendOne(t, s, other), es.ErrDuplicateAggregate)
	require.Equal(t, "DuplicateAggregateId", wowAppends(t, rdb, codec, other))
	requireStored(t, s, id, commits...)
}

func TestNoWriterTakesAPurgedIdAgain(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		codec := wire.JSON(estest.TypesOf(typ))
		s := eventstore.New(rdb, codec)
		mine, neighbour := typ.ID("Aa"), typ.ID("BB") // one hash, one bucket
		add(t, s, commitOf(neighbour, 1))
		require.Equal(t, "Ok", wowAppends(t, rdb, codec, commitOf(mine, 1)))
		require.NoError(t, s.Purge(t.Context(), mine, 1, eventstore.PurgeOptions{Tombstone: true}))
		for _, tenant := range []string{mine.Tenant, "t-2"} {
			c := commitOf(mine.InTenant(tenant), 1)
			require.Equal(t, "DuplicateAggregateId", wowAppends(t, rdb, codec, c))
			require.ErrorIs(t, appendOne(t, s, c), es.ErrDuplicateAggregate)
		}
		require.Empty(t, collect(t, s.Load(t.Context(), mine, es.Versions{})))
		require.Equal(t, []string{"BB"}, scan(t, s, typ))
	})
}
