package snapshot_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

func TestStoreKeepsTheContractOfSnapshotStores(t *testing.T) {
	t.Parallel()
	for name, codec := range map[string]func(types ...es.Types) es.Codec{
		"JSON":        func(types ...es.Types) es.Codec { return wire.JSON(types...) },
		"MessagePack": func(types ...es.Types) es.Codec { return wire.MessagePack(types...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
				estest.TestSnapshotStore(t, func(_ *testing.T, types ...es.Types) *snapshot.Store[estest.State] {
					return snapshot.New[estest.State](rdb, codec(types...))
				})
			})
		})
	}
}
