package es_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

func TestTheLogOfAnUndecodableMessageHasNoError(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := es.LogObserver(slog.New(slog.NewTextHandler(&b, nil)))
	d := es.Delivery{Topic: "t", Group: "g", ID: "1-1", Attempt: 1}
	o.Observe(t.Context(), es.Undecodable{Delivery: d, Reason: es.DeserializationFailed, Err: errors.New("near s3cret")})
	o.Observe(t.Context(), es.DeadLettered{Delivery: d, Reason: "undecodable", Err: errors.New("near s3cret")})
	require.Contains(t, b.String(), "level=WARN msg=undecodable topic=t group=g id=1-1 attempt=1 reason=deserialization_failed")
	require.Contains(t, b.String(), "msg=dead-lettered")
	require.NotContains(t, b.String(), "s3cret")
	b.Reset()
	o.Observe(t.Context(), es.Handled{Delivery: d})
	require.Empty(t, b.String(), "what is as it should be is at debug level")
	o.Observe(t.Context(), es.Trimmed{Topic: "t", Removed: 1})
	o.Observe(t.Context(), es.Trimmed{Topic: "t", Lost: 1})
	require.Contains(t, b.String(), "level=INFO msg=trimmed")
	require.Contains(t, b.String(), "level=WARN msg=trimmed")
}

type counter struct{ n int }

func (c *counter) Observe(context.Context, es.Observation) { c.n++ }

type panics struct{}

func (panics) Observe(context.Context, es.Observation) { panic("oops") }

func TestTheJoinedObserversAreAllToldDespiteAPanic(t *testing.T) {
	t.Parallel()
	c := &counter{}
	err := es.Tell(t.Context(), es.Observers(nil, panics{}, c), es.Published{Topic: "t"})
	require.ErrorIs(t, err, es.ErrPanic)
	require.ErrorContains(t, err, "oops")
	require.Equal(t, 1, c.n)
	require.Nil(t, es.Observers(nil, nil), "nobody is nobody")
	require.NoError(t, es.Tell(t.Context(), es.Observers(), es.Published{}))
}

func TestHealthKnowsWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	var h es.Health
	down := errors.New("down")
	for _, topic := range []string{"a", "b"} {
		h.Observe(t.Context(), es.Unavailable{Topic: topic, Group: "g", Consumer: "c", Cause: down})
	}
	require.Equal(t, []string{"a", "b"}, []string{h.Problems()[0].Topic, h.Problems()[1].Topic})
	require.ErrorIs(t, h.Check(t.Context()), down)
	h.Observe(t.Context(), es.Healed{Topic: "a", Group: "g", Consumer: "other"})
	require.Len(t, h.Problems(), 2, "another consumer's health is its own")
	h.Observe(t.Context(), es.Healed{Topic: "a", Group: "g", Consumer: "c"})
	h.Observe(t.Context(), es.Unsubscribed{Topic: "b", Group: "g", Consumer: "c"})
	require.NoError(t, h.Check(t.Context()))
}
