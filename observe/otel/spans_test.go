package otel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/wire"
)

func TestATraceLeadsFromTheSenderToTheHandlerOfEvents(t *testing.T) {
	t.Parallel()
	rdb, kind := redistest.Shared(t).Client(t), freshType()
	codec, k := wire.JSON(typesOf(kind)), newKit(t, rdb)
	commands, events := commandbus.New(rdb, codec), eventbus.New(rdb, codec)
	commands.Middleware, events.Middleware = []es.Middleware{k.Middleware}, []es.Middleware{k.Middleware}
	commands.Observer, events.Observer = k, k
	accounts := &aggregate.Repository[int]{
		Decider: aggregate.Decider[int]{
			Type:   kind,
			Decide: func(_ int, c es.Command) (es.Events, error) { return es.Events{deposited(c.Body.(deposit))}, nil },
			Evolve: func(n int, _ es.Event) int { return n + 1 },
		},
		Store: memory.NewEventStore(),
	}
	stored := func(ctx context.Context) (last es.Commit, err error) {
		for last, err = range accounts.Store.Load(ctx, kind.ID("ann"), es.Versions{}) {
		}
		return last, err
	}
	background(t, func(ctx context.Context) error {
		s := es.Subscription{Group: "bank", Aggregates: []es.AggregateType{kind}}
		return commands.Subscribe(ctx, s, func(ctx context.Context, c es.Command) (es.Result, error) {
			result, err := accounts.Handle(ctx, c)
			if err != nil {
				return result, err
			}
			commit, err := stored(ctx)
			if err != nil {
				return result, err
			}
			return result, k.Events(events).Publish(ctx, commit)
		})
	})
	seen := make(chan es.Commit, 1)
	background(t, func(ctx context.Context) error {
		s := es.Subscription{Group: "balances", Aggregates: []es.AggregateType{kind}, Start: es.FromBeginning}
		return events.Subscribe(ctx, s, func(_ context.Context, c es.Commit) error {
			seen <- c
			return nil
		})
	})
	ctx, root := k.tracers.Tracer("test").Start(t.Context(), "request")
	require.NoError(t, k.Sender(commands).Send(ctx, es.NewCreateCommand(kind.ID("ann"), deposit{"s3cret"})))
	root.End()
	commit := <-seen

	send, decide := k.span(t, "send deposit"), k.span(t, "handle deposit")
	publish, handle := k.span(t, "publish commits"), k.span(t, "handle commit")
	require.Equal(t, root.SpanContext().SpanID(), send.Parent().SpanID())
	linked(t, send, decide)
	require.Equal(t, decide.SpanContext().SpanID(), publish.Parent().SpanID())
	linked(t, publish, handle)
	require.Equal(t, trace.SpanKindProducer, publish.SpanKind())
	require.Equal(t, trace.SpanKindConsumer, handle.SpanKind())
	require.Contains(t, commit.Header.Get(es.HeaderTraceParent), publish.SpanContext().SpanID().String())

	require.NotContains(t, commit.Header.Get(es.HeaderTraceParent), send.SpanContext().SpanID().String())
	old, err := stored(t.Context())
	require.NoError(t, err)
	require.Empty(t, old.Header.Get(es.HeaderTraceParent), "the publisher's header stays as it is")

	// What is sent in no trace, but carries one, goes on with it.
	again := es.NewCommand(kind.ID("bob"), deposit{"s3cret"})
	again.Header.Set(es.HeaderTraceParent, commit.Header.Get(es.HeaderTraceParent))
	require.NoError(t, k.Sender(commands).Send(context.Background(), again))
	require.Equal(t, commit.Header.Get(es.HeaderTraceParent), again.Header.Get(es.HeaderTraceParent), "the sender's header stays as it is")
	require.True(t, slices.ContainsFunc(k.spans.Ended(), func(s sdktrace.ReadOnlySpan) bool {
		return s.Name() == "send deposit" && s.Parent().SpanID() == publish.SpanContext().SpanID()
	}))
	for _, s := range k.spans.Ended() {
		require.Equal(t, root.SpanContext().TraceID(), s.SpanContext().TraceID(), s.Name())
		require.NotContains(t, fmt.Sprint(s.Attributes(), s.Events(), s.Status()), "s3cret", s.Name())
	}
	require.NotContains(t, fmt.Sprint(k.metrics(t)), "s3cret")
}

// linked says that the handler's span is the child of the sender's, and linked to it.
func linked(t *testing.T, sender, handler sdktrace.ReadOnlySpan) {
	t.Helper()
	require.Equal(t, sender.SpanContext().SpanID(), handler.Parent().SpanID())
	require.True(t, handler.Parent().IsRemote())
	require.Len(t, handler.Links(), 1)
	require.Equal(t, sender.SpanContext().SpanID(), handler.Links()[0].SpanContext.SpanID())
}

func TestFailuresOfHandlersInSpans(t *testing.T) {
	t.Parallel()
	k, kind := newKit(t, nil), freshType()
	for _, c := range []struct {
		name   string
		err    error
		kind   string
		status codes.Code
	}{
		{"fine", nil, "", codes.Unset},
		{"fails", errors.New("s3cret"), "other", codes.Error},
		{"permanent", es.Permanent(errors.New("s3cret")), "permanent", codes.Error},
		{"refused", es.Refuse(errors.New("s3cret")), "refused", codes.Unset},
	} {
		cmd := es.NewCommand(kind.ID("ann"), deposit{})
		cmd.Name = c.name
		require.Equal(t, c.err, k.Middleware(func(context.Context, any) error { return c.err })(t.Context(), cmd))
		s := k.span(t, "handle "+c.name)
		require.Equal(t, c.status, s.Status().Code, c.name)
		all := fmt.Sprint(s.Attributes(), s.Events(), s.Status())
		require.Equal(t, c.kind != "", strings.Contains(all, `"error.type"`), all)
		require.Contains(t, all, c.kind)
		require.NotContains(t, all, "s3cret")
	}
	cmd := es.NewCommand(kind.ID("ann"), deposit{})
	cmd.Name = "panics"
	require.Panics(t, func() {
		_ = k.Middleware(func(context.Context, any) error { panic("s3cret") })(t.Context(), cmd)
	})
	require.Equal(t, codes.Error, k.span(t, "handle panics").Status().Code, "a span ends where a handler panics")
	require.Zero(t, k.metrics(t)["headwater.in_flight{group=,topic=}"])
}
