package estest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

func gatewaySent(t *testing.T, k gatewayKit) {
	seen, err := k.follow(t, es.Wait{Stage: es.StageSent})
	require.NoError(t, err)
	require.Equal(t, []es.Stage{es.StageSent}, seen)
	r, err := k.Gateway.SendAndWait(patient(t), k.command(), es.Wait{Stage: es.StageSent})
	require.NoError(t, err)
	require.Equal(t, es.StageSent, r.Stage)
	require.Equal(t, k.command().Aggregate, r.Aggregate)
	require.NotEmpty(t, r.CommandID)
	require.Equal(t, r.CommandID, r.RequestID)
	require.Zero(t, k.Gateway.Waiting())
}

func gatewayProcessed(t *testing.T, k gatewayKit) {
	k.handle(t, func(c es.Command) []es.Signal {
		return []es.Signal{{Stage: es.StageProcessed, Version: 3, Result: map[string]any{"k": "v"}}}
	})
	seen, err := k.follow(t, es.Wait{})
	require.NoError(t, err)
	require.Equal(t, []es.Stage{es.StageSent, es.StageProcessed}, seen)
	r, err := k.Gateway.SendAndWait(patient(t), k.command(), es.Wait{})
	require.NoError(t, err)
	require.Equal(t, es.StageProcessed, r.Stage)
	require.Equal(t, 3, r.Version)
	require.Equal(t, k.command().Aggregate, r.Aggregate)
	require.Equal(t, map[string]any{"k": "v"}, r.Result)
}

func gatewaySnapshot(t *testing.T, k gatewayKit) {
	order := make(chan []es.Stage, 3)
	order <- []es.Stage{es.StageProcessed, es.StageSnapshot}
	order <- []es.Stage{es.StageSnapshot, es.StageProcessed}
	order <- []es.Stage{es.StageSnapshot, es.StageProjected, es.StageSnapshot, es.StageProcessed, es.StageProcessed}
	k.handle(t, func(c es.Command) []es.Signal { return at(<-order...)(c) })
	seen, err := k.follow(t, es.Wait{Stage: es.StageSnapshot})
	require.NoError(t, err)
	require.Equal(t, []es.Stage{es.StageSent, es.StageProcessed, es.StageSnapshot}, seen)
	seen, err = k.follow(t, es.Wait{Stage: es.StageSnapshot})
	require.NoError(t, err)
	require.Equal(t, []es.Stage{es.StageSent, es.StageSnapshot, es.StageProcessed}, seen)
	r, err := k.Gateway.SendAndWait(patient(t), k.command(), es.Wait{Stage: es.StageSnapshot})
	require.NoError(t, err)
	require.Equal(t, es.StageSnapshot, r.Stage)
}

func gatewayFailed(t *testing.T, k gatewayKit) {
	k.handle(t, func(es.Command) []es.Signal {
		return []es.Signal{{Stage: es.StageProcessed, Code: "ERROR", Message: "no"}}
	})
	for _, w := range []es.Wait{{}, {Stage: es.StageProjected}, {Tail: &es.Wait{}}} {
		seen, err := k.follow(t, w)
		require.Equal(t, []es.Stage{es.StageSent, es.StageProcessed}, seen)
		require.ErrorIs(t, err, es.ErrRefused)
		r, err := k.Gateway.SendAndWait(patient(t), k.command(), w)
		require.EqualError(t, err, "no")
		require.Equal(t, "ERROR", es.CodeOf(err))
		require.Equal(t, es.StageProcessed, r.Stage)
		require.Equal(t, "ERROR", r.Code)
	}
}

func gatewayInvalid(t *testing.T, k gatewayKit) {
	got := make(chan es.Command, 10)
	k.handle(t, func(c es.Command) []es.Signal { got <- c; return at(es.StageProcessed)(c) })
	bad := es.NewCommand(k.typ.ID("a-1"), Ask{"sku"})
	require.ErrorIs(t, k.Gateway.Send(t.Context(), bad), es.ErrInvalid)
	for _, stage := range []es.Stage{es.StageSent, es.StageProcessed} {
		r, err := k.Gateway.SendAndWait(patient(t), bad, es.Wait{Stage: stage})
		require.ErrorIs(t, err, es.ErrInvalid)
		require.Equal(t, es.StageSent, r.Stage)
		require.Equal(t, es.CodeValidation, r.Code)
		require.Equal(t, []es.FieldError{{Name: "sku", Message: "is blank"}}, r.Fields)
	}
	r, err := k.Gateway.SendAndWait(patient(t), es.NewCommand(k.typ.ID("a-1"), Ask{"other"}), es.Wait{})
	require.ErrorIs(t, err, es.ErrInvalid)
	require.Equal(t, es.CodeIllegalArgument, r.Code)
	_, err = k.Gateway.SendAndWait(patient(t), es.NewCommand(k.typ.ID(""), Ask{}), es.Wait{})
	require.ErrorIs(t, err, es.ErrInvalid)
	_, err = k.Gateway.SendAndWait(patient(t), k.command(), es.Wait{Stage: "DONE"})
	require.ErrorIs(t, err, es.ErrInvalid)
	require.Zero(t, k.Gateway.Waiting())
	_, err = k.Gateway.SendAndWait(patient(t), k.command(), es.Wait{})
	require.NoError(t, err)
	require.Len(t, got, 1, "none of the others was sent")
}

// gatewayPropagated: a handler sends on, under the header that says who waits.
func gatewayPropagated(t *testing.T, k gatewayKit) {
	plans := make(chan es.Header, 1)
	k.handle(t, func(c es.Command) []es.Signal {
		plans <- c.Header
		tail := es.NewCommand(k.other.ID("b-1"), Ask{})
		tail.ID = "tail-1"
		es.PropagateWait(c.Header, &tail.Header)
		bad := es.NewCommand(k.other.ID("b-2"), Ask{"sku"})
		bad.ID = "tail-2"
		es.PropagateWait(c.Header, &bad.Header)
		require.NoError(t, k.Gateway.Send(t.Context(), tail))
		require.ErrorIs(t, k.Gateway.Send(t.Context(), bad), es.ErrInvalid)
		return []es.Signal{{Stage: es.StageProcessed}, {Stage: es.StageSagaHandled, Commands: []string{"tail-1", "tail-2"}}}
	})
	r, err := k.Gateway.SendAndWait(patient(t), k.command(), es.Wait{Tail: &es.Wait{Stage: es.StageSent}})
	require.ErrorIs(t, err, es.ErrInvalid)
	require.Equal(t, es.StageSent, r.Stage)
	require.Equal(t, "tail-2", r.CommandID)
	plan, waits := es.WaitPlanOf(<-plans)
	require.True(t, waits)
	_, err = es.ParseID(plan.ID)
	require.NoError(t, err, "Kotlin's nodes read it")
}

func gatewayVoid(t *testing.T, k gatewayKit) {
	c := k.command()
	c.Void = true
	r, err := k.Gateway.SendAndWait(patient(t), c, es.Wait{Stage: es.StageSent})
	require.NoError(t, err)
	require.Equal(t, es.StageSent, r.Stage)
	_, err = k.Gateway.SendAndWait(patient(t), c, es.Wait{})
	require.ErrorIs(t, err, es.ErrInvalid)
}

func gatewayProjected(t *testing.T, k gatewayKit) {
	totals := es.Function{Kind: "EVENT", Context: "c", Processor: "Totals", Name: "on"}
	k.handle(t, func(es.Command) []es.Signal {
		return []es.Signal{
			{Stage: es.StageProjected, Function: es.Function{Processor: "Others", Name: "on"}, Last: true, Result: map[string]any{"from": "others"}},
			{Stage: es.StageProjected, Function: totals, Result: map[string]any{"from": "first"}},
			{Stage: es.StageProjected, Function: totals, Last: true, Result: map[string]any{"a": "1"}},
			{Stage: es.StageProcessed, Version: 4, Result: map[string]any{"b": "2"}},
		}
	})
	r, err := k.Gateway.SendAndWait(patient(t), k.command(), es.Wait{Stage: es.StageProjected, Function: es.Function{Processor: "Totals"}})
	require.NoError(t, err)
	require.Equal(t, es.StageProjected, r.Stage)
	require.Equal(t, totals, r.Function)
	require.Equal(t, map[string]any{"a": "1", "b": "2"}, r.Result, "of all that count")
	require.Equal(t, 4, r.Version)
}

func gatewayChain(t *testing.T, k gatewayKit) {
	saga := es.Function{Kind: "EVENT", Processor: "Saga", Name: "on"}
	k.handle(t, func(es.Command) []es.Signal {
		return []es.Signal{
			{CommandID: "early", Stage: es.StageProcessed, Version: 1, Result: map[string]any{"early": "1"}},
			{CommandID: "foreign", Stage: es.StageProcessed, Code: "Failed"},
			{Stage: es.StageSagaHandled, Function: es.Function{Processor: "Other"}, Commands: []string{"foreign"}},
			{Stage: es.StageSagaHandled, Function: saga, Commands: []string{"early", "late"}},
			{Stage: es.StageProcessed, Version: 9},
			{CommandID: "late", Stage: es.StageProcessed, Version: 2, Result: map[string]any{"late": "2"}},
		}
	})
	w := es.Wait{Function: es.Function{Processor: "Saga"}, Tail: &es.Wait{}}
	r, err := k.Gateway.SendAndWait(patient(t), k.command(), w)
	require.NoError(t, err)
	require.Equal(t, es.StageSagaHandled, r.Stage)
	require.Equal(t, []string{"early", "late"}, r.Commands)
	require.Equal(t, map[string]any{"early": "1", "late": "2"}, r.Result)
	require.Equal(t, 9, r.Version)
}

func gatewayTimeout(t *testing.T, k gatewayKit) {
	k.handle(t, at(es.StageProcessed))
	var processed es.CommandResult
	ctx, cancel := context.WithCancel(t.Context())
	for r, err := range k.Gateway.SendAndFollow(ctx, k.command(), es.Wait{Stage: es.StageSnapshot}) {
		if err == nil && r.Stage == es.StageProcessed {
			cancel()
		}
		if processed = r; err != nil {
			require.ErrorIs(t, err, es.ErrUncertain)
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	require.Error(t, ctx.Err())
	require.Equal(t, es.StageProcessed, processed.Stage, "what is known")
	require.Equal(t, 3, processed.Version)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := k.Gateway.SendAndWait(short, k.command(), es.Wait{Stage: es.StageSnapshot})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func gatewayStopped(t *testing.T, k gatewayKit) {
	k.handle(t, at(es.StageProcessed))
	for r, err := range k.Gateway.SendAndFollow(patient(t), k.command(), es.Wait{}) {
		require.NoError(t, err)
		require.Equal(t, es.StageSent, r.Stage)
		break
	}
	require.Zero(t, k.Gateway.Waiting())
}
