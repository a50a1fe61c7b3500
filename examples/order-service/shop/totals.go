package shop

import (
	"context"
	"sync"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
)

// Totals are counted from the aggregates as they are stored.
type Totals struct {
	Orders, OrdersPaid          int
	PaidTotal                   order.Money
	Items, ItemsPacked          int
	Packages, PackagesDelivered int
}

// Count loads every aggregate there is, so many at a time.
func (s *Shop) Count(ctx context.Context, workers int) (Totals, error) {
	var t Totals
	err := each(ctx, s.store, s.Orders, workers, func(o order.State) {
		t.Orders++
		if o.Status == order.StatusPaid {
			t.OrdersPaid++
			t.PaidTotal += o.Price
		}
	})
	if err != nil {
		return t, err
	}
	err = each(ctx, s.store, s.Items, workers, func(i item.State) {
		t.Items++
		if i.Status == item.StatusPacked {
			t.ItemsPacked++
		}
	})
	if err != nil {
		return t, err
	}
	err = each(ctx, s.store, s.Packages, workers, func(p parcel.State) {
		t.Packages++
		if p.Status == parcel.StatusDelivered {
			t.PackagesDelivered++
		}
	})
	return t, err
}

// each loads all aggregates of a repository, so many at a time, and hands their states
// to see, one at a time.
func each[S any](ctx context.Context, store es.Scanner, repo *aggregate.Repository[S], workers int, see func(S)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ids := make(chan es.AggregateID)
	var mu sync.Mutex
	var loading sync.WaitGroup
	for range workers {
		loading.Go(func() {
			for id := range ids {
				one, err := repo.Load(ctx, id)
				if err != nil {
					stop(err)
					continue
				}
				mu.Lock()
				see(one.State)
				mu.Unlock()
			}
		})
	}
	for id, err := range store.Scan(ctx, repo.Decider.Type, "") {
		if err != nil {
			stop(err)
			break
		}
		select {
		case ids <- id:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(ids)
	loading.Wait()
	return context.Cause(ctx)
}
