package memory

import (
	"context"
	"sync"
	"time"
)

// Lease is an [es.Lease] within one process. Make one, and a [Lease.Holder] for each that
// competes for it.
type Lease struct {
	mu     sync.Mutex
	holder *Holder
	until  time.Time
}

// Holder is one of those that compete for a [Lease].
type Holder struct{ lease *Lease }

// Holder is a new competitor.
func (l *Lease) Holder() *Holder { return &Holder{l} }

// Hold implements [es.Lease].
func (h *Holder) Hold(ctx context.Context, d time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	l := h.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.holder != nil && l.holder != h && now.Before(l.until) {
		return false, nil
	}
	l.holder, l.until = h, now.Add(d)
	return true, nil
}
