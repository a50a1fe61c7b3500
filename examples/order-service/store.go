package main

import (
	"context"
	"log/slog"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
	"github.com/headwater-go/headwater/examples/order-service/shop"
	"github.com/headwater-go/headwater/internal/redisurl"
	"github.com/headwater-go/headwater/wire"
)

// backend is what the service has on a server.
type backend struct {
	// rdb is for what blocks; calls puts those of many goroutines into one round trip.
	rdb, calls redis.UniversalClient
	store      *eventstore.Store
	end        func()
}

// commands is a command bus on one of the backend's clients.
func (b *backend) commands(rdb redis.UniversalClient) *commandbus.Bus {
	return commandbus.New(rdb, wire.JSON(shop.Types()...))
}

// events is an event bus on one of the backend's clients.
func (b *backend) events(rdb redis.UniversalClient) *eventbus.Bus {
	return eventbus.New(rdb, wire.JSON(shop.Types()...))
}

// open is the backend on the server of a URL, or on one inside this process where there
// is no URL.
func open(ctx context.Context, url string) (*backend, error) {
	if url == "" {
		return openBuiltIn(ctx)
	}
	rdb, _, err := redisurl.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	return openOn(ctx, rdb, func() { _ = rdb.Close() }, slog.Default())
}

func openBuiltIn(ctx context.Context) (*backend, error) {
	server, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	end := func() {
		_ = rdb.Close() // every command was answered
		server.Close()
	}
	// It evicts nothing, and has no way to say so: the store's warning would frighten.
	return openOn(ctx, rdb, end, slog.New(slog.DiscardHandler))
}

// pipelining is implemented by the clients that put the calls of many workers into
// one round trip.
type pipelining interface {
	AutoPipeline() (*redis.AutoPipeliner, error)
}

func openOn(ctx context.Context, rdb redis.UniversalClient, end func(), logger *slog.Logger) (*backend, error) {
	b := &backend{rdb: rdb, calls: rdb, end: end}
	codec := wire.JSON(shop.Types()...)
	// On the plain client: a pipelining one hides the masters of a cluster.
	first := eventstore.New(rdb, codec)
	first.Logger = logger
	if err := first.Ready(ctx, order.Type, item.Type, parcel.Type); err != nil {
		end()
		return nil, err
	}
	if p, ok := rdb.(pipelining); ok {
		pipelined, err := p.AutoPipeline()
		if err != nil {
			end()
			return nil, err
		}
		b.calls = pipelined // closed with its client
	}
	b.store = eventstore.New(b.calls, codec)
	b.store.Logger = logger
	return b, nil
}
