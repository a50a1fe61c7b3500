package otel

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

// metrics are the instruments that observations are counted with.
type metrics struct {
	published, publishFailed, received, undecodable, handled, failed, retried metric.Int64Counter
	deadLetters, replayed, expired, claimed, leasesLost, takenOver, missing   metric.Int64Counter
	unavailable, healed, restored, trimmed, trimmedLost                       metric.Int64Counter
	inFlight                                                                  metric.Int64UpDownCounter
	took                                                                      metric.Float64Histogram
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	var m metrics
	var all []error
	for _, c := range []struct {
		to         *metric.Int64Counter
		name, unit string
		what       string
	}{
		{&m.published, "headwater.published", "{message}", "Messages added to a topic."},
		{&m.publishFailed, "headwater.publish.failed", "{call}", "Calls that did not add all of their messages, as far as is known."},
		{&m.received, "headwater.received", "{message}", "Messages taken in hand."},
		{&m.undecodable, "headwater.undecodable", "{message}", "Messages that cannot be handed to a handler."},
		{&m.handled, "headwater.handled", "{message}", "Messages whose handler returned nil."},
		{&m.failed, "headwater.failed", "{call}", "Calls of handlers that failed."},
		{&m.retried, "headwater.retried", "{call}", "Failures after which the message is tried again."},
		{&m.deadLetters, "headwater.dead_letters", "{message}", "Messages made dead letters."},
		{&m.replayed, "headwater.replayed", "{message}", "Dead letters given to their group again."},
		{&m.expired, "headwater.dead_letters.expired", "{message}", "Dead letters removed for their age or number."},
		{&m.claimed, "headwater.claimed", "{message}", "Messages taken over from other consumers."},
		{&m.leasesLost, "headwater.leases.lost", "{lease}", "Leases that ran out before they were renewed."},
		{&m.takenOver, "headwater.taken_over", "{message}", "Handled messages that were another consumer's by then."},
		{&m.missing, "headwater.missing", "{message}", "Pending messages that are no longer in the stream."},
		{&m.unavailable, "headwater.subscriptions.unavailable", "{time}", "How often a subscription could not work."},
		{&m.healed, "headwater.subscriptions.healed", "{time}", "How often a subscription worked again."},
		{&m.restored, "headwater.groups.restored", "{group}", "Groups that were gone and were made anew."},
		{&m.trimmed, "headwater.trimmed", "{message}", "Acknowledged messages removed from a stream."},
		{&m.trimmedLost, "headwater.trimmed.lost", "{message}", "Messages removed that some group had not acknowledged."},
	} {
		var err error
		*c.to, err = meter.Int64Counter(c.name, metric.WithUnit(c.unit), metric.WithDescription(c.what))
		all = append(all, err)
	}
	var err error
	m.inFlight, err = meter.Int64UpDownCounter("headwater.in_flight", metric.WithUnit("{message}"),
		metric.WithDescription("Messages in handlers within the Middleware."))
	all = append(all, err)
	m.took, err = meter.Float64Histogram("headwater.handle.duration", metric.WithUnit("s"),
		metric.WithDescription("How long handlers took."))
	return &m, errors.Join(append(all, err)...)
}

// of is the set of attributes of a group of a topic, and of what else there is.
func of(topic, group string, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("topic", topic), attribute.String("group", groupLabel(group)))...))
}

func ofTopic(topic string, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("topic", topic))...))
}

// groupLabel is a group's name; that of a broadcast is without its consumer, which is
// another one each time.
func groupLabel(group string) string {
	name, broadcast := strings.CutPrefix(group, recovery.EphemeralPrefix)
	if !broadcast {
		return group
	}
	if at := strings.LastIndexByte(name, ':'); at >= 0 {
		name = name[:at]
	}
	return name
}

func (m *metrics) observe(ctx context.Context, o es.Observation) {
	switch o := o.(type) {
	case es.Published:
		if o.Err != nil {
			m.publishFailed.Add(ctx, 1, ofTopic(o.Topic, attribute.String("error.type", errorType(o.Err))))
			return
		}
		m.published.Add(ctx, int64(o.Messages), ofTopic(o.Topic))
	case es.Received:
		m.received.Add(ctx, 1, of(o.Topic, o.Group))
	case es.Undecodable:
		m.undecodable.Add(ctx, 1, of(o.Topic, o.Group, attribute.String("reason", string(o.Reason))))
	case es.Handled:
		m.handled.Add(ctx, 1, of(o.Topic, o.Group))
		m.took.Record(ctx, o.Took.Seconds(), of(o.Topic, o.Group))
	case es.Failed:
		kind := attribute.String("error.type", errorType(o.Err))
		m.failed.Add(ctx, 1, of(o.Topic, o.Group, kind))
		m.took.Record(ctx, o.Took.Seconds(), of(o.Topic, o.Group, kind))
	case es.Retried:
		m.retried.Add(ctx, 1, of(o.Topic, o.Group))
	case es.DeadLettered:
		m.deadLetters.Add(ctx, 1, of(o.Topic, o.Group, attribute.String("reason", o.Reason)))
	default:
		m.observeState(ctx, o)
	}
}

func (m *metrics) observeState(ctx context.Context, o es.Observation) {
	switch o := o.(type) {
	case es.Replayed:
		m.replayed.Add(ctx, 1, of(o.Topic, o.Group))
	case es.LettersExpired:
		m.expired.Add(ctx, o.TooOld+o.TooMany, ofTopic(o.Topic))
	case es.Claimed:
		m.claimed.Add(ctx, int64(o.Claimed), of(o.Topic, o.Group))
	case es.LeaseLost:
		m.leasesLost.Add(ctx, 1, of(o.Topic, o.Group))
	case es.TakenOver:
		m.takenOver.Add(ctx, int64(len(o.IDs)), of(o.Topic, o.Group))
	case es.Missing:
		m.missing.Add(ctx, int64(len(o.IDs)), of(o.Topic, o.Group))
	case es.Unavailable:
		m.unavailable.Add(ctx, 1, of(o.Topic, o.Group))
	case es.Healed:
		m.healed.Add(ctx, 1, of(o.Topic, o.Group))
	case es.GroupRestored:
		m.restored.Add(ctx, 1, of(o.Topic, o.Group))
	case es.Trimmed:
		m.trimmed.Add(ctx, o.Removed, ofTopic(o.Topic))
		m.trimmedLost.Add(ctx, o.Lost, ofTopic(o.Topic))
	}
}
