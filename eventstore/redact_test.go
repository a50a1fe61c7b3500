package eventstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

// As docs/layout.md says that an event is redacted.
func TestSTO06_ACommitIsRedactedWithoutBeingRemoved(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		s, codec := open(rdb, typ), wire.JSON(estest.TypesOf(typ))
		commits := commitsOf(typ.ID("a-1"), 1, 4)
		add(t, s, commits[:3]...)
		stream := rediskey.Stream(commits[0].Aggregate)
		stored, err := rdb.ZRangeByScore(t.Context(), stream, &redis.ZRangeBy{Min: "2", Max: "2"}).Result()
		require.NoError(t, err)
		require.Len(t, stored, 1)
		c, err := codec.DecodeCommit([]byte(stored[0]))
		require.NoError(t, err)
		c.Events[0].Body = estest.Created{Data: "redacted"}
		member, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		_, err = rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.ZRem(t.Context(), stream, stored[0])
			p.ZAddNX(t.Context(), stream, redis.Z{Score: 2, Member: member})
			return nil
		})
		require.NoError(t, err)

		require.ErrorIs(t, appendOne(t, s, commits[1]), es.ErrDuplicateRequest)
		add(t, s, commits[3])
		requireStored(t, s, c.Aggregate, commits...)
		got := collect(t, s.Load(t.Context(), c.Aggregate, es.Versions{}))
		require.Equal(t, estest.Created{Data: "redacted"}, got[1].Events[0].Body)
	})
}
