package eventstore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	kernel "github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/statebus"
	"github.com/headwater-go/headwater/wire"
)

// BenchmarkPublish handles create commands that are stored and published, with their
// state, in one step, against a note that is moved beside the handlers.
func BenchmarkPublish(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	for _, workers := range []int{1, 50, 100} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			body := putIn{added{SKU: "A-1", Count: 2, Note: "leave it at the door"}}
			handler := func(oneStep bool) (*kernel.Repository[stock], func(_, n int)) {
				typ := benchType()
				codec := wire.JSON(benchTypes(typ))
				store := eventstore.New(rdb, codec)
				store.Publish = oneStep
				r := &kernel.Repository[stock]{Decider: stockDecider(typ), Store: store, Events: eventbus.New(rdb, codec), States: statebus.New[stock](rdb, codec)}
				return r, func(_, n int) {
					if _, err := r.Handle(b.Context(), es.NewCreateCommand(typ.ID(fmt.Sprintf("order-%08d", n)), body)); err != nil {
						b.Error(err)
					}
				}
			}
			_, inOneStep := handler(true)
			noting, withNote := handler(false)
			took, allocs := measure(b, workers, inOneStep, withNote)
			require.NoError(b, noting.Drain(b.Context()))
			b.ReportMetric(float64(took[1])/float64(took[0]), "x-note")
			b.ReportMetric(allocs[0], "allocs/step")
			b.ReportMetric(allocs[1], "allocs/note")
		})
	}
}
