// Package shop puts the order service together: three repositories over one store.
package shop

import (
	"context"
	"fmt"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
)

// Types is everything that the service stores, for its codec.
func Types() []es.Types { return []es.Types{order.Types, item.Types, parcel.Types} }

// Store is what the service needs of an event store.
type Store interface {
	es.EventStore
	es.Scanner
}

// Shop is the service. The lives of its aggregates are a few events long, so it keeps
// no snapshots.
type Shop struct {
	Orders   *aggregate.Repository[order.State]
	Items    *aggregate.Repository[item.State]
	Packages *aggregate.Repository[parcel.State]
	store    Store
}

// New is the service over a store.
func New(store Store) *Shop {
	return &Shop{
		Orders:   &aggregate.Repository[order.State]{Decider: order.Decider, Store: store},
		Items:    &aggregate.Repository[item.State]{Decider: item.Decider, Store: store},
		Packages: &aggregate.Repository[parcel.State]{Decider: parcel.Decider, Store: store},
		store:    store,
	}
}

// Handle has a command carried out by the aggregate that it is for.
func (s *Shop) Handle(ctx context.Context, c es.Command) (es.Result, error) {
	switch c.Aggregate.Type {
	case order.Type:
		return s.Orders.Handle(ctx, c)
	case item.Type:
		return s.Items.Handle(ctx, c)
	case parcel.Type:
		return s.Packages.Handle(ctx, c)
	}
	return es.Result{}, fmt.Errorf("%w: aggregate %s", es.ErrUnknownType, c.Aggregate.Type)
}
