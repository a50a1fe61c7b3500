package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/examples/order-service/dispatch"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
	"github.com/headwater-go/headwater/examples/order-service/sales"
)

// parts run side by side until one of them fails or they are stopped.
type parts struct {
	stop    context.CancelCauseFunc
	running sync.WaitGroup
}

func newParts(ctx context.Context) (context.Context, *parts) {
	ctx, stop := context.WithCancelCause(ctx)
	return ctx, &parts{stop: stop}
}

// run lets part run until ctx, which is that of the parts, is done.
func (p *parts) run(ctx context.Context, part func(context.Context) error) {
	p.running.Go(func() {
		if err := part(ctx); err != nil {
			p.stop(err)
		}
	})
}

// end stops the parts and waits for them.
func (p *parts) end() {
	p.stop(nil)
	p.running.Wait()
}

// worker is what carries out commands on a backend.
func (b *backend) worker() *dispatch.Worker {
	return dispatch.NewWorker(b.store, b.events(b.calls), b.calls)
}

// work has w carry out commands until ctx is done.
func (b *backend) work(ctx context.Context, w *dispatch.Worker, workers int) error {
	return b.commands(b.rdb).Subscribe(ctx, es.Subscription{
		Group:         commandbus.Group(order.Type.Context),
		Aggregates:    []es.AggregateType{order.Type, item.Type, parcel.Type},
		Workers:       workers,
		MaxDeliveries: dispatch.MaxDeliveries,
		Lease:         5 * time.Second, // who kills a worker to see what happens won't wait for 15
		Sweep:         time.Second,
	}, w.Handle)
}

// follow is the part that tells the model what is published from now on. The model has
// read by then what was stored before.
func (b *backend) follow(ctx context.Context, m *sales.Model) (func(context.Context) error, error) {
	events, id := b.events(b.rdb), es.NewRandomIDs()()
	events.NewID = func() string { return id } // so that both calls mean the same group
	own := es.Subscription{Group: eventbus.Group(order.Type.Context, "Sales"), Aggregates: []es.AggregateType{order.Type}, Broadcast: true}
	if err := events.Prepare(ctx, own); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return events.Subscribe(ctx, own, m.Hear) }, m.Fetch(ctx)
}

// workUntilInterrupted is the command worker.
func (o *options) workUntilInterrupted(ctx context.Context, b *backend, stderr io.Writer) int {
	fmt.Fprintln(stderr, "carrying out commands; Ctrl-C ends it")
	w := b.worker()
	err := b.work(ctx, w, o.workers)
	fmt.Fprintf(stderr, "%d commands answered by this worker\n", w.Done())
	if err != nil {
		return failed(ctx, stderr, err)
	}
	return exitOK
}
