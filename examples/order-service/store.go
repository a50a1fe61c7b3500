package main

import (
	"context"

	"github.com/headwater-go/headwater/examples/order-service/shop"
	"github.com/headwater-go/headwater/memory"
)

func open(ctx context.Context, url string) (shop.Store, func(), error) {
	return memory.NewEventStore(), func() {}, ctx.Err()
}
