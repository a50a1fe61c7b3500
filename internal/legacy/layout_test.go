package legacy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// The functions agree with the description that the fixtures are written from.
func TestKeysOfEveryEra(t *testing.T) {
	t.Parallel()
	inv := es.AggregateType{Context: "inventory-service", Alias: "inv", Name: "stock_item"}
	for _, typ := range []es.AggregateType{order, inv} {
		for _, id := range fixture.Ugly {
			for _, tenant := range []string{"(0)", "", "t}@"} {
				id := typ.ID(id).InTenant(tenant)
				for _, era := range []legacy.Eras{legacy.A, legacy.B, legacy.C, legacy.D} {
					k := fixture.KeysOf(era, id)
					require.Equal(t, k.Events, legacy.EventsKey(era, id))
					require.Equal(t, k.Requests, legacy.RequestsKey(era, id))
					require.Equal(t, k.Snapshot, legacy.SnapshotKey(era, id))
				}
				k := fixture.KeysOf(legacy.D, id)
				require.Equal(t, []string{k.IDs, k.Member}, []string{legacy.IDsKey(typ, rediskey.Bucket(id.ID)), legacy.IDsMember(id)})
			}
		}
	}
	require.Equal(t, "prepare:{a{b}}", legacy.PreparedKey("a{b}"))
}

func TestCanonicalKeysAreToldFromOthers(t *testing.T) {
	t.Parallel()
	id := order.ID("a@b:{c}")
	k := rediskey.EventKeys(id)
	for key, kind := range map[string]legacy.Kind{
		k.Stream: legacy.Events, k.Requests: legacy.Requests, k.IDs: legacy.IDs, k.Outbox: "", k.Purged: "", rediskey.Fence(order, 3): "",
		rediskey.Snapshot(id): legacy.Snapshot,
	} {
		f, ok := legacy.Canonical(key)
		require.True(t, ok, key)
		require.Equal(t, legacy.Found{Eras: legacy.E, Kind: kind, Stem: "order-service.order"}, f, key)
	}
	f, ok := legacy.Canonical(rediskey.Prepare("n", "k"))
	require.True(t, ok)
	require.Equal(t, legacy.Prepare, f.Kind)
	for _, key := range []string{"", "v2:prepare:{a.b}:rolled", "{v2:es:*.b:1}:ids", "{v2:es:b3JkZXI:1}:ids", "v2:snapshot:{x", "order-service.order:es:{a@b}"} {
		_, ok := legacy.Canonical(key)
		require.False(t, ok, key)
	}
}

func TestLookAlikes(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"order-service.order:es:{a}", "order:event:{a@b}", "prepare:x", "prepare:{}", "{order-service.order:es:128}:ids", ":es:req_idx"} {
		_, ok := legacy.Recognize(key, "")
		require.False(t, ok, key)
		require.True(t, legacy.LooksLike(key), key)
	}
	for _, key := range []string{"", "order-service.order:event", "{order-service.order:event}:dlq", "sessions:{a}", "headwater:{topics}"} {
		require.False(t, legacy.LooksLike(key), key)
	}
}
