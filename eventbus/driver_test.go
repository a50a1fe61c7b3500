package eventbus_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

var codecs = map[string]func(types ...es.Types) es.Codec{
	"json":        func(types ...es.Types) es.Codec { return wire.JSON(types...) },
	"messagepack": func(types ...es.Types) es.Codec { return wire.MessagePack(types...) },
}

func TestEventBus(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for name, codec := range codecs {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				estest.TestEventBus(t, func(_ *testing.T, types ...es.Types) *eventbus.Bus {
					return eventbus.New(rdb, codec(types...))
				})
			})
		}
	})
}
