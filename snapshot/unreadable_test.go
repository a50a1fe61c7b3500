package snapshot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
)

// requireUnreadable wants an error that tells a repository to replay, and with what
// bytes to replace.
func requireUnreadable(t *testing.T, err error, raw string) {
	t.Helper()
	var bad *es.UnreadableSnapshot
	require.ErrorAs(t, err, &bad)
	require.ErrorIs(t, err, es.ErrCorrupt)
	require.Equal(t, raw, string(bad.Raw))
}

func TestSNAP02_BytesThatAreNoSnapshotAreReportedAndCanBeReplaced(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for what, junk := range map[string]string{
			"cut off":          `{`,
			"empty":            ``,
			"binary":           "\x00\x01\xfe\xff\xc1",
			"another document": `{"name":"x","total":7}`,
			"an array":         `[1,2]`,
			"null":             `null`,
			"not a number":     `{"version":NaN}`,
			"packed, cut off":  "\xc1HWs000000",
			"packed, no digit": "\xc1HWs00000000x1rest",
		} {
			t.Run(what, func(t *testing.T) {
				id := newID()
				s := newStore(rdb, id)
				put(t, rdb, id, junk)
				_, err := s.Load(t.Context(), id)
				if !strings.HasPrefix(junk, "\xc1HW") { // to the JSON codec that is another codec's
					requireUnreadable(t, err, junk)
				}
				require.Error(t, err)
				_, err = s.Version(t.Context(), id)
				require.Error(t, err)
				require.ErrorIs(t, s.Save(t.Context(), cartAt(id, 3)), es.ErrCorrupt)
				require.Equal(t, junk, stored(t, rdb, id), "nothing was written")

				done, err := s.Replace(t.Context(), []byte(junk), cartAt(id, 3))
				require.NoError(t, err)
				require.True(t, done)
				_, err = s.Load(t.Context(), id)
				require.NoError(t, err)
			})
		}
	})
}

func TestSNAP02_CutOffTailIsUnreadableAndTheNextSaveMendsIt(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	s := newStore(rdb, id)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 3)))
	whole := stored(t, rdb, id)
	put(t, rdb, id, whole[:len(whole)-5])
	_, err := s.Load(t.Context(), id)
	requireUnreadable(t, err, whole[:len(whole)-5])
	require.NoError(t, s.Save(t.Context(), cartAt(id, 4)), "the head shows an older version")
	_, err = s.Load(t.Context(), id)
	require.NoError(t, err)
}

func TestSNAP07_SnapshotOfAnotherShapeIsUnreadable(t *testing.T) {
	t.Parallel()
	type before struct {
		Total float64 `json:"total"`
	}
	type after struct {
		TotalMinor int64 `json:"totalMinor"`
	}
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	old := snapshot.New[before](rdb, jsonCodec(id))
	require.NoError(t, old.Save(t.Context(), es.Snapshot[before]{Meta: cartAt(id, 4).Meta, State: before{12.5}}))

	s := snapshot.New[after](rdb, jsonCodec(id))
	_, err := s.Load(t.Context(), id)
	requireUnreadable(t, err, stored(t, rdb, id))
	requireVersion(t, s, id, 4)
	require.NoError(t, s.Save(t.Context(), es.Snapshot[after]{Meta: cartAt(id, 4).Meta, State: after{1250}}))
	got, err := s.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, after{1250}, got.State)
}

func TestSNAP07_OwnSchemaMarkTellsMeaningsApart(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	v1, v2 := newStore(rdb, id), newStore(rdb, id)
	v1.Schema, v2.Schema = "cart-1", "cart-2"
	require.NoError(t, v1.Save(t.Context(), cartAt(id, 4)))
	got, err := v1.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "cart-1", got.Schema)
	_, err = v2.Load(t.Context(), id)
	requireUnreadable(t, err, stored(t, rdb, id))
	require.NoError(t, v2.Save(t.Context(), got), "the mark is the writer's, not that of what it loaded")
	_, err = v2.Load(t.Context(), id)
	require.NoError(t, err)
}

func TestSnapshotOfAKotlinNodeHasNoMarkAndIsRead(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	put(t, rdb, id, `{"contextName":"snapshot-test","aggregateName":"`+id.Type.Name+`","aggregateId":"cart-1","tenantId":"(0)",`+
		`"ownerId":"","spaceId":"","version":2,"eventId":"e","firstOperator":"","operator":"","firstEventTime":1,"eventTime":2,`+
		`"state":{"owner":"kim","lines":["a"]},"snapshotTime":3,"tags":{},"deleted":true}`)
	got, err := newStore(rdb, id).Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, cart{"kim", []string{"a"}}, got.State)
	require.True(t, got.Deleted)
	require.Empty(t, got.Schema)
	require.Equal(t, time.UnixMilli(3).UTC(), got.SnapshotTime.UTC())
}

func TestSNAP08_SnapshotOfAnotherAggregateIsUnreadable(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	otherName, otherContext, otherID := newID(), id, id
	otherContext.Type.Context = "another-context" // under the same alias
	otherID.ID = "cart-2"
	for what, owner := range map[string]es.AggregateID{
		"tenant": id.InTenant("t-2"), "id": otherID, "name": otherName, "context": otherContext,
	} {
		t.Run(what, func(t *testing.T) {
			require.NoError(t, newStore(rdb, owner).Save(t.Context(), cartAt(owner, 9)))
			foreign := stored(t, rdb, owner)
			put(t, rdb, id, foreign)
			_, err := newStore(rdb, id).Load(t.Context(), id)
			requireUnreadable(t, err, foreign)
		})
	}
}

func TestVersionThatNoAggregateHasIsUnreadable(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	s := newStore(rdb, id)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 5)))
	good := stored(t, rdb, id)
	for _, version := range []string{"-1", "2147483648", "99999999999999999999", `"x"`} {
		bad := strings.Replace(good, `"version":5,`, `"version":`+version+`,`, 1)
		put(t, rdb, id, bad)
		_, err := s.Load(t.Context(), id)
		requireUnreadable(t, err, bad)
		_, err = s.Version(t.Context(), id)
		requireUnreadable(t, err, bad)
	}
}

func TestSNAP10_KeyOfAnotherTypeIsUnreadableAndLeftAlone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		id := newID()
		s := newStore(rdb, id)
		require.NoError(t, rdb.HSet(t.Context(), rediskey.Snapshot(id), "a", 1).Err())
		_, err := s.Load(t.Context(), id)
		requireUnreadable(t, err, "")
		_, err = s.Version(t.Context(), id)
		requireUnreadable(t, err, "")
		require.ErrorIs(t, s.Save(t.Context(), cartAt(id, 1)), es.ErrCorrupt)
		_, err = s.Replace(t.Context(), nil, cartAt(id, 1))
		require.ErrorIs(t, err, es.ErrCorrupt)
		require.Equal(t, "1", rdb.HGet(t.Context(), rediskey.Snapshot(id), "a").Val())

		require.NoError(t, s.Drop(t.Context(), id))
		require.NoError(t, s.Save(t.Context(), cartAt(id, 1)))
	})
}

func TestSNAP10_SaveTakesAnExpiryAway(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	s := newStore(rdb, id)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 1)))
	require.True(t, rdb.Expire(t.Context(), rediskey.Snapshot(id), time.Hour).Val())
	require.NoError(t, s.Save(t.Context(), cartAt(id, 1)))
	require.Equal(t, time.Duration(-1), rdb.TTL(t.Context(), rediskey.Snapshot(id)).Val(), "none")
}

func TestCodecsDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		id := newID()
		stores := map[string]*snapshot.Store[cart]{
			"JSON":        snapshot.New[cart](rdb, jsonCodec(id)),
			"MessagePack": snapshot.New[cart](rdb, packedCodec(id)),
		}
		for mine, other := range map[string]string{"JSON": "MessagePack", "MessagePack": "JSON"} {
			t.Run(mine, func(t *testing.T) {
				require.NoError(t, stores[mine].Drop(t.Context(), id))
				require.NoError(t, stores[mine].Save(t.Context(), cartAt(id, 5)))
				before := stored(t, rdb, id)
				for _, version := range []int{4, 5, 6} {
					require.ErrorIs(t, stores[other].Save(t.Context(), cartAt(id, version)), es.ErrWrongFormat)
				}
				_, err := stores[other].Load(t.Context(), id)
				require.ErrorIs(t, err, es.ErrWrongFormat)
				require.NotErrorIs(t, err, es.ErrCorrupt, "nobody may replace it")
				require.Equal(t, before, stored(t, rdb, id))

				require.NoError(t, stores[mine].Save(t.Context(), cartAt(id, 4)), "older: ignored")
				require.Equal(t, before, stored(t, rdb, id))
				requireVersion(t, stores[mine], id, 5)
				require.NoError(t, stores[mine].Save(t.Context(), cartAt(id, 6)))
				requireVersion(t, stores[mine], id, 6)
			})
		}
	})
}
