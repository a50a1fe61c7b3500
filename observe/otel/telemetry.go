package otel

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	api "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/headwater-go/headwater/es"
)

const scope = "github.com/headwater-go/headwater/observe/otel"

// Config says where spans and metrics go.
type Config struct {
	// Tracers makes the spans. Defaults to the global provider.
	Tracers trace.TracerProvider
	// Meters makes the metrics. Defaults to the global provider.
	Meters metric.MeterProvider
	// Redis is asked, once for each collection and topic, how far the groups are that this
	// process subscribes to. Without it there are no metrics of lag and of what is pending.
	Redis redis.UniversalClient
}

// Telemetry is an [es.Observer] that keeps the metrics. Its Middleware and the senders and
// publishers that it wraps make the spans. It is safe for concurrent use.
type Telemetry struct {
	tracer  trace.Tracer
	metrics *metrics
	groups  *groups
	watch   metric.Registration
}

// New makes the instruments. Close ends the metrics that ask Redis.
func New(c Config) (*Telemetry, error) {
	if c.Tracers == nil {
		c.Tracers = api.GetTracerProvider()
	}
	if c.Meters == nil {
		c.Meters = api.GetMeterProvider()
	}
	t := &Telemetry{tracer: c.Tracers.Tracer(scope), groups: newGroups(c.Redis)}
	meter := c.Meters.Meter(scope)
	var err error
	if t.metrics, err = newMetrics(meter); err != nil {
		return nil, err
	}
	if t.watch, err = t.groups.register(meter); err != nil {
		return nil, err
	}
	return t, nil
}

// Close ends the metrics of groups; the others go on as long as their provider does.
func (t *Telemetry) Close() error { return t.watch.Unregister() }

// Observe implements [es.Observer].
func (t *Telemetry) Observe(ctx context.Context, o es.Observation) {
	t.groups.observe(ctx, o)
	t.metrics.observe(ctx, o)
}

// errorType names the kind of an error; its text may quote a message, and stays out.
func errorType(err error) string {
	switch {
	case errors.Is(err, es.ErrPanic):
		return "panic"
	case es.IsPermanent(err):
		return "permanent"
	case errors.Is(err, es.ErrRefused):
		return "refused"
	case errors.Is(err, es.ErrVersionConflict):
		return "version_conflict"
	case errors.Is(err, es.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, es.ErrUncertain):
		return "uncertain"
	case errors.Is(err, es.ErrTooLarge):
		return "too_large"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "other"
}
