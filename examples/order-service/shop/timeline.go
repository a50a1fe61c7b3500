package shop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
)

// Moment is one event in the life of an order, its items and their packages.
type Moment struct {
	At   time.Time
	Who  string
	What string
}

// Timeline reads the events of an order, of its items and of their packages back from
// the store, in the order in which they happened.
func (s *Shop) Timeline(ctx context.Context, id string) ([]Moment, error) {
	placed, err := s.Orders.Load(ctx, order.Type.ID(id))
	if err != nil {
		return nil, err
	}
	ids := []es.AggregateID{placed.Aggregate}
	for _, i := range placed.State.Items {
		ids = append(ids, item.Type.ID(i))
	}
	var moments []Moment
	for next := 0; next < len(ids); next++ { // packages join ids on the way
		for commit, err := range s.store.Load(ctx, ids[next], es.Versions{}) {
			if err != nil {
				return nil, err
			}
			for _, e := range commit.Events {
				moments = append(moments, describe(e))
				if packed, ok := e.Body.(item.Packed); ok {
					if p := parcel.Type.ID(packed.Package); !slices.Contains(ids, p) {
						ids = append(ids, p)
					}
				}
			}
		}
	}
	slices.SortStableFunc(moments, func(a, b Moment) int { return a.At.Compare(b.At) })
	return moments, nil
}

// describe says an event in words.
func describe(e es.Event) Moment {
	m := Moment{Who: e.Aggregate.Type.Name + " " + e.Aggregate.ID}
	switch body := e.Body.(type) {
	case order.Placed:
		m.At, m.What = body.At, fmt.Sprintf("placed, %d items for %s", len(body.Items), body.Price)
	case order.Confirmed:
		m.At, m.What = body.At, "confirmed"
	case order.Reminded:
		m.At, m.What = body.At, "customer reminded to pay"
	case order.Paid:
		m.At, m.What = body.At, "paid, "+body.Amount.String()
	case item.Placed:
		m.At, m.What = body.At, "ordered"
	case item.RanOut:
		m.At, m.What = body.At, "out of stock"
	case item.Reordered:
		m.At, m.What = body.At, "reordered"
	case item.Picked:
		m.At, m.What = body.At, "picked"
	case item.Packed:
		m.At, m.What = body.At, "packed into package "+body.Package
	case parcel.Created:
		m.At, m.What = body.At, fmt.Sprintf("created with %d items, %.3f kg", len(body.Items), float64(body.Grams)/1000)
	case parcel.Sent:
		m.At, m.What = body.At, "sent"
	case parcel.Failed:
		m.At, m.What = body.At, "delivery failed"
	case parcel.Delivered:
		m.At, m.What = body.At, "delivered"
	}
	return m
}
