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

// each runs a test with a maker of stores on each kind of deployment and for each codec.
func each(t *testing.T, run func(t *testing.T, newStore func(t *testing.T, types ...es.Types) *eventstore.Store)) {
	t.Helper()
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for name, codec := range codecs {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, func(_ *testing.T, types ...es.Types) *eventstore.Store { return eventstore.New(rdb, codec(types...)) })
			})
		}
	})
}

var codecs = map[string]func(types ...es.Types) es.Codec{
	"json":        func(types ...es.Types) es.Codec { return wire.JSON(types...) },
	"messagepack": func(types ...es.Types) es.Codec { return wire.MessagePack(types...) },
}

func TestEventStore(t *testing.T) { each(t, estest.TestEventStore[*eventstore.Store]) }
func TestScanner(t *testing.T)    { each(t, estest.TestScanner[*eventstore.Store]) }
func TestOutbox(t *testing.T)     { each(t, estest.TestOutbox[*eventstore.Store]) }

func TestEventStoreOnAutoPipeline(t *testing.T) {
	t.Parallel()
	ap, err := redistest.Shared(t).Client(t).AutoPipeline()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ap.Close() })
	estest.TestEventStore(t, func(_ *testing.T, types ...es.Types) *eventstore.Store {
		return eventstore.New(ap, wire.JSON(types...))
	})
}
