package es

import (
	"context"
	"sync"
)

// Valve holds subscriptions back and lets them go on: see [Subscription.Valve]. Its zero
// value is open, and so is a nil one. It is safe for concurrent use.
type Valve struct {
	mu     sync.Mutex
	opened chan struct{} // closed when it opens; nil while it is open
}

// Close lets no further message begin, from now on.
func (v *Valve) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.opened == nil {
		v.opened = make(chan struct{})
	}
}

// Open lets messages go on.
func (v *Valve) Open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.opened != nil {
		close(v.opened)
		v.opened = nil
	}
}

// Closed reports whether messages are held back.
func (v *Valve) Closed() bool { return v.waiting() != nil }

// Wait waits until it is open; it returns the error of a ctx that is done before. It is
// for those who implement a bus.
func (v *Valve) Wait(ctx context.Context) error {
	for {
		opened := v.waiting()
		if opened == nil {
			return nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (v *Valve) waiting() <-chan struct{} {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.opened
}
