package service_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/service"
)

// A service that follows the events of orders, and answers over HTTP how it is. A real
// one gets its ctx from signal.NotifyContext, and ends with os.Exit(1) on an error.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	bus := memory.NewEventBus()
	orders := es.Subscription{Group: "shop.Mails", Aggregates: []es.AggregateType{{Context: "shop", Name: "order"}}, Start: es.FromNow}
	var s service.Service
	var listener net.Listener
	s.Parts = []service.Part{
		{
			Name:    "mails",
			Prepare: func(ctx context.Context) error { return bus.Prepare(ctx, orders) },
			Run: func(ctx context.Context) error {
				return bus.Subscribe(ctx, orders, func(context.Context, es.Commit) error { return nil })
			},
		},
		{
			Name: "http",
			Prepare: func(ctx context.Context) (err error) {
				listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "localhost:0")
				return err
			},
			Run: func(ctx context.Context) error { return serve(ctx, listener, s.Handler()) },
		},
	}
	go func() {
		for !s.Health(ctx).Ready {
			time.Sleep(time.Millisecond)
		}
		response, err := http.Get("http://" + listener.Addr().String() + "/readyz")
		if err == nil {
			fmt.Println(response.Status)
			_ = response.Body.Close()
		}
		stop() // as SIGTERM would
	}()
	fmt.Println(s.Run(ctx))
	// Output:
	// 200 OK
	// <nil>
}

// serve serves until ctx is done, and then what is being served.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx)) // within the service's grace
	}
}
