package redistest

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// patience is how long anything here may take, on a busy machine.
const patience = 60 * time.Second

// poll calls f until it returns nil, for patience at most; its last error is the result's.
func poll(what string, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v: %w", what, patience, err)
		}
	}
}

// must fails the test, at its own line, where err is one.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
}
