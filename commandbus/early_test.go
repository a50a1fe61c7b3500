package commandbus_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
)

// atOnce is a bus whose handlers have answered before it says that a command is sent.
type atOnce func(c es.Command)

func (f atOnce) Send(_ context.Context, c es.Command) error {
	f(c)
	return nil
}

func TestAnswersThatComeBeforeTheCommandIsSentCountInAnyOrder(t *testing.T) {
	t.Parallel()
	var g *commandbus.Gateway
	g = commandbus.NewGateway(nil, atOnce(func(c es.Command) {
		for _, s := range []es.Signal{
			{CommandID: "early", Stage: es.StageProcessed, Result: map[string]any{"early": "1"}},
			{CommandID: c.ID, Stage: es.StageSagaHandled, Commands: []string{"early", "late"}},
			{CommandID: c.ID, Stage: es.StageProcessed, Version: 9},
			{CommandID: "late", Stage: es.StageProcessed, Result: map[string]any{"late": "2"}},
		} {
			g.Notify(t.Context(), c.Header, s)
		}
	}))
	run(t, g)
	id := newType().ID("a-1")
	r, err := g.SendAndWait(t.Context(), es.NewCommand(id, pay{1}), es.Wait{Tail: &es.Wait{}})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"early": "1", "late": "2"}, r.Result)
	require.Equal(t, 9, r.Version)
}
