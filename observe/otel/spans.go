package otel

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/headwater-go/headwater/es"
)

// w3c reads and writes traceparent and tracestate. Baggage is not carried: a header stays
// in the store for good.
var w3c propagation.TraceContext

// carrier is a header that a trace is read from and written to.
type carrier struct{ *es.Header }

func (c carrier) Get(key string) string { return c.Header.Get(key) }
func (c carrier) Set(key, value string) { c.Header.Set(key, value) }
func (c carrier) Keys() []string {
	keys := make([]string, len(*c.Header))
	for i, f := range *c.Header {
		keys[i] = f.Key
	}
	return keys
}

// start begins the span of a message that is sent, in the trace of ctx; or, where ctx has
// none, in that which the header carries already.
func (t *Telemetry) start(ctx context.Context, name string, h es.Header, id es.AggregateID) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = w3c.Extract(ctx, carrier{&h})
	}
	return t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(about(id)...)) //nolint:spancheck // the caller ends it
}

// stamped is a copy of h that carries the trace of ctx; the caller's stays as it is.
func stamped(ctx context.Context, h es.Header) es.Header {
	h = slices.Clone(h)
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() && sc.TraceState().Len() == 0 {
		h = slices.DeleteFunc(h, func(f es.HeaderField) bool { return f.Key == es.HeaderTraceState })
	}
	w3c.Inject(ctx, carrier{&h})
	return h
}

func end(span trace.Span, err error) error {
	mark(span, err)
	span.End()
	return err
}

// mark says how it went. A refusal is the aggregate's answer, and no fault.
func mark(span trace.Span, err error) {
	if err != nil {
		kind := errorType(err)
		span.SetAttributes(attribute.String("error.type", kind))
		if kind != "refused" {
			span.SetStatus(codes.Error, "")
		}
	}
}

func about(id es.AggregateID) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "redis"),
		attribute.String("headwater.aggregate.type", id.Type.String()),
		attribute.String("headwater.aggregate.id", id.ID),
	}
}

// Sender sends commands through next, each in a span whose trace its header carries.
func (t *Telemetry) Sender(next es.CommandSender) es.CommandSender { return sender{t, next} }

type sender struct {
	t    *Telemetry
	next es.CommandSender
}

func (s sender) Send(ctx context.Context, c es.Command) error {
	ctx, span := s.t.start(ctx, "send "+c.Name, c.Header, c.Aggregate)
	c.Header = stamped(ctx, c.Header)
	return end(span, s.next.Send(ctx, c))
}

// Events publishes commits through next, those of one call in one span whose trace their
// headers carry.
func (t *Telemetry) Events(next es.EventPublisher) es.EventPublisher { return events{t, next} }

type events struct {
	t    *Telemetry
	next es.EventPublisher
}

func (e events) Publish(ctx context.Context, commits ...es.Commit) error {
	if len(commits) == 0 {
		return e.next.Publish(ctx)
	}
	ctx, span := e.t.start(ctx, "publish commits", commits[0].Header, commits[0].Aggregate)
	commits = slices.Clone(commits)
	for i := range commits {
		commits[i].Header = stamped(ctx, commits[i].Header)
	}
	return end(span, e.next.Publish(ctx, commits...))
}

// States publishes state events through next, each in a span whose trace its header carries.
func (t *Telemetry) States(next es.StatePublisher) es.StatePublisher { return states{t, next} }

type states struct {
	t    *Telemetry
	next es.StatePublisher
}

func (s states) Publish(ctx context.Context, e es.StateEvent) error {
	ctx, span := s.t.start(ctx, "publish state", e.Header, e.Aggregate)
	e.Header = stamped(ctx, e.Header)
	return end(span, s.next.Publish(ctx, e))
}

// Middleware calls the handler in a span that is a child of the one that sent the message,
// and linked to it as well, and counts the messages in flight.
func (t *Telemetry) Middleware(next es.MessageHandler) es.MessageHandler {
	return func(ctx context.Context, message any) (err error) {
		name, h, id := what(message)
		ctx = w3c.Extract(ctx, carrier{&h})
		d, _ := es.DeliveryOf(ctx)
		options := []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(about(id)...), trace.WithAttributes(delivered(d)...),
		}
		if from := trace.SpanContextFromContext(ctx); from.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
		}
		ctx, span := t.tracer.Start(ctx, "handle "+name, options...)
		defer span.End()
		set := of(d.Topic, d.Group)
		t.metrics.inFlight.Add(ctx, 1, set)
		finished := false
		defer func() {
			t.metrics.inFlight.Add(ctx, -1, set)
			if !finished { // it panics; the bus makes an error of it
				err = es.ErrPanic
			}
			mark(span, err)
		}()
		err = next(ctx, message)
		finished = true
		return err
	}
}

// what a message is: a name for its span, its header, and whom it is about.
func what(message any) (string, es.Header, es.AggregateID) {
	switch m := message.(type) {
	case es.Command:
		return m.Name, m.Header, m.Aggregate
	case es.Commit:
		return "commit", m.Header, m.Aggregate
	case es.StateEvent:
		return "state", m.Header, m.Aggregate
	}
	return "message", nil, es.AggregateID{}
}

func delivered(d es.Delivery) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.destination.name", d.Topic),
		attribute.String("messaging.consumer.group.name", groupLabel(d.Group)),
		attribute.String("messaging.message.id", d.ID),
		attribute.Int("headwater.attempt", d.Attempt),
		attribute.Bool("headwater.recovered", d.Recovered),
		attribute.Bool("headwater.replayed", d.Replayed),
	}
}
