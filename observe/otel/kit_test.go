package otel_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/observe/otel"
)

type (
	deposit struct {
		Secret string `json:"secret"`
	}
	deposited deposit
)

func (deposit) CommandName() string { return "deposit" }
func (deposited) EventName() string { return "deposited" }

var types atomic.Int64

func freshType() es.AggregateType {
	return es.AggregateType{Context: "bank", Name: fmt.Sprintf("account%d", types.Add(1))}
}

func typesOf(t es.AggregateType) es.Types {
	return es.Types{Aggregate: t, Commands: []es.Type{{Body: deposit{}}}, Events: []es.Type{{Body: deposited{}}}}
}

// kit is a Telemetry whose spans and metrics a test can read.
type kit struct {
	*otel.Telemetry
	spans   *tracetest.SpanRecorder
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
}

func newKit(t *testing.T, rdb redis.UniversalClient) kit {
	t.Helper()
	k := kit{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	k.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(k.spans))
	var err error
	k.Telemetry, err = otel.New(otel.Config{
		Tracers: k.tracers, Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(k.reader)), Redis: rdb,
	})
	require.NoError(t, err)
	return k
}

// span waits for the span of a name to end.
func (k kit) span(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found sdktrace.ReadOnlySpan
	eventually(t, "span "+name, func() bool {
		for _, s := range k.spans.Ended() {
			if s.Name() == name {
				found = s
			}
		}
		return found != nil
	})
	return found
}

// metrics are the values there are now, by name and attributes, such as
// "headwater.handled{group=g,topic=t}". Of a histogram it is the count.
func (k kit) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, k.reader.Collect(t.Context(), &data))
	all := map[string]float64{}
	add := func(name string, set attribute.Set, v float64) {
		all[name+"{"+set.Encoded(attribute.DefaultEncoder())+"}"] = v
	}
	for _, s := range data.ScopeMetrics {
		for _, m := range s.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, float64(p.Count))
				}
			default:
				require.Fail(t, "unknown kind", "%s %T", m.Name, d)
			}
		}
	}
	return all
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-every.C {
		if f() {
			return
		}
	}
	require.Fail(t, "it never happens", what)
}

// background runs f until the test ends.
func background(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
}

// addOther adds an entry that holds no message.
func addOther(topic string) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: topic, Values: []string{"other", "x"}}
}
