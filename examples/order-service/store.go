package main

import (
	"context"
	"log/slog"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
	"github.com/headwater-go/headwater/examples/order-service/shop"
	"github.com/headwater-go/headwater/internal/redisurl"
	"github.com/headwater-go/headwater/wire"
)

// open is the event store on the server of a URL, or on one inside this process where
// there is no URL. The function ends what it began.
func open(ctx context.Context, url string) (*eventstore.Store, func(), error) {
	if url == "" {
		return openBuiltIn(ctx)
	}
	rdb, _, err := redisurl.Connect(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	return openOn(ctx, rdb, func() { _ = rdb.Close() }, slog.Default())
}

func openBuiltIn(ctx context.Context) (*eventstore.Store, func(), error) {
	server, err := miniredis.Run()
	if err != nil {
		return nil, nil, err
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

func openOn(ctx context.Context, rdb redis.UniversalClient, end func(), logger *slog.Logger) (*eventstore.Store, func(), error) {
	if p, ok := rdb.(pipelining); ok {
		pipelined, err := p.AutoPipeline()
		if err != nil {
			end()
			return nil, nil, err
		}
		rdb = pipelined // closed with its client
	}
	store := eventstore.New(rdb, wire.JSON(shop.Types()...))
	store.Logger = logger
	if err := store.Ready(ctx, order.Type, item.Type, parcel.Type); err != nil {
		end()
		return nil, nil, err
	}
	return store, end, nil
}
