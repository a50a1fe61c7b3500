package commandbus_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/wire"
)

// run runs a gateway until the test ends.
func run(t *testing.T, g *commandbus.Gateway) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
}

func TestCommandGatewayInMemory(t *testing.T) {
	t.Parallel()
	estest.TestCommandGateway(t, func(t *testing.T, _ ...es.Types) estest.GatewayParts {
		bus := memory.NewCommandBus()
		g := commandbus.NewGateway(nil, bus)
		run(t, g)
		return estest.GatewayParts{Bus: bus, Gateway: g, Notifier: g}
	})
}

func TestCommandGatewayOnRedis(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for name, notifier := range map[string]func(g *commandbus.Gateway) es.Notifier{
			"handled in the same process": func(g *commandbus.Gateway) es.Notifier { return g },
			"handled in another process":  func(*commandbus.Gateway) es.Notifier { return commandbus.NewNotifier(rdb) },
			"beside another gateway": func(g *commandbus.Gateway) es.Notifier {
				g.URL = "http://127.0.0.1:1/wow/command/wait" // Redis comes first
				return commandbus.NewGateway(rdb, nil)
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				estest.TestCommandGateway(t, func(t *testing.T, types ...es.Types) estest.GatewayParts {
					bus := commandbus.New(rdb, wire.JSON(types...))
					g := commandbus.NewGateway(rdb, bus)
					parts := estest.GatewayParts{Bus: bus, Gateway: g, Notifier: notifier(g)}
					run(t, g)
					return parts
				})
			})
		}
	})
}
