package wire_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// bare is a codec's library on the body alone. The metric "×bare" says how much longer
// the whole commit takes than that.
type bare struct {
	codec     es.Codec
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
}

func bares() map[string]bare {
	return map[string]bare{
		"JSON":        {wire.JSON(carts()), func(v any) ([]byte, error) { return json.Marshal(v) }, func(b []byte, v any) error { return json.Unmarshal(b, v) }},
		"MessagePack": {wire.MessagePack(carts()), msgpack.Marshal, msgpack.Unmarshal},
	}
}

// shortPlaced makes a commit of about 400 bytes of JSON.
func shortPlaced() placed {
	p := somePlaced()
	p.Lines = p.Lines[:1]
	return p
}

// compare measures whole, and beside it how many times as long it takes as bare: by
// turns, so that a busy machine is as busy for both, and as the median.
func compare(b *testing.B, size int, bare, whole func() error) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if err := whole(); err != nil {
			b.Fatal(err)
		}
	}
	ratios := make([]float64, 101)
	for i := range ratios {
		reference := timeOf(b, bare)
		ratios[i] = float64(timeOf(b, whole)) / float64(reference)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "×bare")
	b.ReportMetric(float64(size), "bytes")
}

func timeOf(b *testing.B, f func() error) time.Duration {
	b.Helper()
	start := time.Now()
	for range 50 {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

func BenchmarkEncodeCommit(b *testing.B) {
	for name, c := range bares() {
		b.Run(name, func(b *testing.B) {
			body := shortPlaced()
			commit := someCommit(body)
			doc, err := c.codec.EncodeCommit(&commit)
			require.NoError(b, err)
			compare(b, len(doc), func() error { _, err := c.marshal(body); return err },
				func() error { _, err := c.codec.EncodeCommit(&commit); return err })
		})
	}
}

func BenchmarkDecodeCommit(b *testing.B) {
	for name, c := range bares() {
		b.Run(name, func(b *testing.B) {
			body, err := c.marshal(shortPlaced())
			require.NoError(b, err)
			commit := someCommit(shortPlaced())
			doc, err := c.codec.EncodeCommit(&commit)
			require.NoError(b, err)
			compare(b, len(doc), func() error { var p placed; return c.unmarshal(body, &p) },
				func() error { _, err := c.codec.DecodeCommit(doc); return err })
		})
	}
}
