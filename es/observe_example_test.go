package es_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/headwater-go/headwater/es"
)

// Several observers on one bus: a log without times, and health for a probe.
func ExampleObservers() {
	plain := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	var health es.Health
	observer := es.Observers(&health, es.LogObserver(slog.New(slog.NewTextHandler(os.Stdout, plain))))
	// bus.Observer = observer; the bus then does what follows.
	ctx := context.Background()
	observer.Observe(ctx, es.Unavailable{Topic: "bank.account:event", Group: "g", Consumer: "c", Cause: es.ErrUnavailable})
	fmt.Println(health.Check(ctx) != nil)
	observer.Observe(ctx, es.Healed{Topic: "bank.account:event", Group: "g", Consumer: "c"})
	fmt.Println(health.Check(ctx))
	// Output:
	// level=WARN msg="subscription unavailable" topic=bank.account:event group=g consumer=c error="server unavailable"
	// true
	// level=INFO msg="subscription healed" topic=bank.account:event group=g consumer=c after=0s
	// <nil>
}
