package snapshot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

// cart is the state in these tests.
type cart struct {
	Owner string   `json:"owner"`
	Lines []string `json:"lines"`
}

var types atomic.Int64

// newID is an id of an aggregate type that no other test has.
func newID() es.AggregateID {
	t := es.AggregateType{Context: "snapshot-test", Alias: "st", Name: fmt.Sprintf("cart_%d", types.Add(1))}
	return t.ID("cart-1")
}

func jsonCodec(id es.AggregateID) es.Codec   { return wire.JSON(es.Types{Aggregate: id.Type}) }
func packedCodec(id es.AggregateID) es.Codec { return wire.MessagePack(es.Types{Aggregate: id.Type}) }

func newStore(rdb redis.Cmdable, id es.AggregateID) *snapshot.Store[cart] {
	return snapshot.New[cart](rdb, jsonCodec(id))
}

var epoch = time.UnixMilli(1_700_000_000_000).UTC()

func cartAt(id es.AggregateID, version int) es.Snapshot[cart] {
	return es.Snapshot[cart]{
		Meta: es.Meta{
			Aggregate: id, OwnerID: "owner-1", SpaceID: "space-1", Version: version,
			EventID: fmt.Sprintf("commit-%d", version), FirstOperator: "alice", Operator: "bob",
			FirstEventTime: epoch, EventTime: epoch.Add(time.Duration(version) * time.Second),
			SnapshotTime: epoch.Add(time.Hour), Tags: es.Tags{"team": {"a", "b"}},
		},
		State: cart{Owner: "ann", Lines: []string{fmt.Sprintf("line of version %d", version)}},
	}
}

// versioned is a store of whatever state type.
type versioned interface {
	Version(ctx context.Context, id es.AggregateID) (int, error)
}

func requireVersion(t testing.TB, s versioned, id es.AggregateID, want int) {
	t.Helper()
	got, err := s.Version(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func stored(t testing.TB, rdb redis.Cmdable, id es.AggregateID) string {
	t.Helper()
	value, err := rdb.Get(t.Context(), rediskey.Snapshot(id)).Result()
	require.NoError(t, err)
	return value
}

func put(t testing.TB, rdb redis.Cmdable, id es.AggregateID, value string) {
	t.Helper()
	require.NoError(t, rdb.Set(t.Context(), rediskey.Snapshot(id), value, 0).Err())
}

// vectors reads a file that holds what Wow v8.10.10 wrote.
func vectors[T any](t testing.TB, file string) (v T) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &v))
	return v
}
