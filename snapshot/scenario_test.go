package snapshot_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

type scenario struct {
	What  string
	Steps []struct {
		Setup, Op, Document, Key string
		Result                   struct {
			Ok    json.RawMessage
			Error *struct{ RedisError string }
		}
	}
	Keyspace json.RawMessage
}

func TestScenariosEndAsInWow(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	order := es.AggregateType{Context: "order-service", Name: "order"}
	id := order.ID("order-1")
	// With raw states it writes no schema mark, so bytes can be compared with Wow's.
	s := snapshot.New[es.Raw](rdb, wire.JSON(es.Types{Aggregate: order}))
	scenarios := vectors[struct{ Snapshot []scenario }](t, "scripts.json").Snapshot
	require.Len(t, scenarios, 25)
	for _, sc := range scenarios {
		t.Run(sc.What, func(t *testing.T) {
			require.NoError(t, s.Drop(t.Context(), id))
			require.NoError(t, s.Drop(t.Context(), id.InTenant("tenant-2")))
			for _, step := range sc.Steps {
				op, _, _ := strings.Cut(step.Op, "(")
				switch op {
				case "":
					setUp(t, rdb, rediskey.Snapshot(id), step.Setup)
				case "save":
					err := saveDocument(t, s, step.Document)
					if step.Result.Error == nil {
						require.NoError(t, err, step.Op)
					} else { // the kind is ours: Wow's is whatever its script or cjson raised
						require.ErrorIs(t, err, es.ErrCorrupt, step.Op)
					}
				case "load":
					got, err := s.Load(t.Context(), id)
					requireLoaded(t, got, err, step.Result.Ok)
				case "getVersion":
					got, err := s.Version(t.Context(), id)
					require.NoError(t, err)
					require.JSONEq(t, string(step.Result.Ok), fmt.Sprint(got))
				default:
					require.Fail(t, "unknown step", step.Op)
				}
			}
			requireKeyspace(t, rdb, sc)
		})
	}
}

func setUp(t *testing.T, rdb redis.Cmdable, key, command string) {
	t.Helper()
	if command == "HSET snapshot a b" {
		require.NoError(t, rdb.HSet(t.Context(), key, "a", "b").Err())
		return
	}
	value, ok := strings.CutPrefix(command, "SET snapshot ")
	require.True(t, ok, command)
	var depth int
	if n, _ := fmt.Sscanf(value, "{version:1,x:<%d nested arrays>}", &depth); n == 1 {
		value = `{"version":1,"x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	}
	require.NoError(t, rdb.Set(t.Context(), key, value, 0).Err())
}

func saveDocument(t *testing.T, s *snapshot.Store[es.Raw], document string) error {
	t.Helper()
	codec := wire.JSON(es.Types{Aggregate: es.AggregateType{Context: "order-service", Name: "order"}})
	var state es.Raw
	meta, err := codec.DecodeSnapshot([]byte(document), &state)
	require.NoError(t, err)
	return s.Save(t.Context(), es.Snapshot[es.Raw]{Meta: meta, State: state})
}

// requireLoaded compares with what Wow's load gave: null, a version, or an object. It
// gives nothing where Wow's failed.
func requireLoaded(t *testing.T, got es.Snapshot[es.Raw], err error, want json.RawMessage) {
	t.Helper()
	var fields struct {
		Version      int
		Note         *string
		SnapshotTime int64
	}
	switch {
	case want == nil:
		var bad *es.UnreadableSnapshot
		require.ErrorAs(t, err, &bad)
	case string(want) == "null":
		require.ErrorIs(t, err, es.ErrNotFound)
	case want[0] == '{':
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(want, &fields))
		require.Equal(t, fields.Version, got.Version)
		require.Equal(t, fields.SnapshotTime, got.SnapshotTime.UnixMilli())
		var state struct{ Note *string }
		require.NoError(t, json.Unmarshal(got.State, &state))
		require.Equal(t, fields.Note, state.Note)
	default:
		require.NoError(t, err)
		require.Equal(t, string(want), fmt.Sprint(got.Version))
	}
}

func requireKeyspace(t *testing.T, rdb redis.Cmdable, sc scenario) {
	t.Helper()
	var keys []struct {
		Key, Type, Value string
		Fields           map[string]string
	}
	if string(sc.Keyspace) == `"unchanged"` {
		key := rediskey.Snapshot(es.AggregateType{Context: "order-service", Name: "order"}.ID("order-1"))
		require.True(t, strings.HasPrefix(rdb.Get(t.Context(), key).Val(), `{"version":1,"x":[[`))
		return
	}
	require.NoError(t, json.Unmarshal(sc.Keyspace, &keys))
	for _, k := range keys {
		require.Equal(t, k.Type, rdb.Type(t.Context(), k.Key).Val())
		if k.Type == "hash" {
			require.Equal(t, k.Fields, rdb.HGetAll(t.Context(), k.Key).Val())
		} else {
			require.Equal(t, k.Value, rdb.Get(t.Context(), k.Key).Val())
		}
	}
}
