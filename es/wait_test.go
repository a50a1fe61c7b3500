package es_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

func header(pairs [][2]string) (h es.Header) {
	for _, p := range pairs {
		h = append(h, es.HeaderField{Key: p[0], Value: p[1]})
	}
	return h
}

func TestWowsHeadersSayWhoWaitsForWhat(t *testing.T) {
	t.Parallel()
	g := readSignals(t)
	require.Len(t, g.Headers, 3)
	projector := es.Function{Context: "order-service", Processor: "OrderProjector", Name: "onEvent"}
	saga := es.Function{Context: "order-service", Processor: "OrderSaga", Name: "onEvent"}
	const at = "http://10.0.0.1:8080/wow/command/wait"
	want := map[string]es.WaitPlan{
		"wait headers propagated":              {ID: "0Tvcokgi0001200", Endpoint: at, Wait: es.Wait{Stage: es.StageProjected, Function: projector}},
		"chain wait headers propagated":        {ID: "0Tvcokgi0001201", Endpoint: at, Wait: es.Wait{Stage: es.StageSagaHandled, Function: saga, Tail: &es.Wait{Stage: es.StageProcessed}}},
		"saga command from a chain-wait event": {ID: "0Tvcokgi0001201", Endpoint: at, Wait: es.Wait{Stage: es.StageProcessed}},
	}
	var chain, tail es.Header
	for _, v := range g.Headers {
		got, waits := es.WaitPlanOf(header(v.Header))
		require.True(t, waits, v.What)
		require.Equal(t, want[v.What], got, v.What)
		if v.Command != nil {
			got, _ = es.WaitPlanOf(header(v.Command))
			require.Equal(t, want[v.What], got, v.What)
		}
		switch v.What {
		case "wait headers propagated": // what a gateway writes is what Wow's wrote
			h := es.Header{{Key: "mine", Value: "x"}, {Key: es.HeaderWaitChain, Value: "simple"}}
			got.Write(&h)
			h = h[1:]
			for _, f := range header(v.Command)[:6] {
				require.Equal(t, f, h[0], v.What)
				h = h[1:]
			}
			require.Empty(t, h)
			var command es.Header
			es.PropagateWait(header(v.Header), &command)
			require.Empty(t, command, "a stage that is waited for is no business of a saga's command")
		case "chain wait headers propagated":
			chain = header(v.Header)
		default:
			tail = header(v.Header)
		}
	}
	var h es.Header
	es.PropagateWait(chain, &h)
	require.Equal(t, tail[:3], h)
}

func TestAWaitPlanComesBackFromItsHeader(t *testing.T) {
	t.Parallel()
	f := es.Function{Context: "c", Processor: "p", Name: "n"}
	for _, w := range []es.Wait{
		{}, {Stage: es.StageSent}, {Stage: es.StageProjected, Function: f}, {Stage: es.StageEventHandled, Function: es.Function{Name: "n"}},
		{Function: f, Tail: &es.Wait{}}, {Tail: &es.Wait{Stage: es.StageSnapshot, Function: f}},
	} {
		w, err := w.WithDefaults()
		require.NoError(t, err)
		p := es.WaitPlan{ID: "w-1", Endpoint: "redis:x", Wait: w}
		h := es.Header{{Key: "k", Value: "v"}}
		p.Write(&h)
		before := slices.Clone(h)
		p.Write(&h)
		require.Equal(t, before, h)
		got, waits := es.WaitPlanOf(h)
		require.True(t, waits)
		require.Equal(t, p, got)
	}
	for _, h := range []es.Header{
		nil, {{Key: es.HeaderWaitID, Value: "w"}}, {{Key: es.HeaderWaitStage, Value: "SENT"}},
		{{Key: es.HeaderWaitID, Value: "w"}, {Key: es.HeaderWaitStage, Value: "sent"}},
	} {
		_, waits := es.WaitPlanOf(h)
		require.False(t, waits, "%v", h)
	}
	for _, w := range []es.Wait{
		{Stage: "sent"}, {Stage: es.StageProcessed, Tail: &es.Wait{}}, {Tail: &es.Wait{Stage: "x"}}, {Tail: &es.Wait{Tail: &es.Wait{}}},
	} {
		_, err := w.WithDefaults()
		require.ErrorIs(t, err, es.ErrInvalid)
	}
}

func TestStagesNeedThoseBeforeThem(t *testing.T) {
	t.Parallel()
	require.True(t, es.StageProcessed.Needs(es.StageSent))
	require.False(t, es.StageSent.Needs(es.StageProcessed))
	require.True(t, es.StageSnapshot.Needs(es.StageProcessed))
	require.True(t, es.StageSnapshot.Needs(es.StageSnapshot))
	require.False(t, es.StageSnapshot.Needs(es.StageProjected))
}
