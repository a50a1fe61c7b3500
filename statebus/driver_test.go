package statebus_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/statebus"
	"github.com/headwater-go/headwater/wire"
)

var codecs = map[string]func(types ...es.Types) es.Codec{
	"json":        func(types ...es.Types) es.Codec { return wire.JSON(types...) },
	"messagepack": func(types ...es.Types) es.Codec { return wire.MessagePack(types...) },
}

func TestStateBus(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for name, codec := range codecs {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				estest.TestStateBus(t, func(_ *testing.T, types ...es.Types) *statebus.Bus[estest.State] {
					return statebus.New[estest.State](rdb, codec(types...))
				})
			})
		}
	})
}
