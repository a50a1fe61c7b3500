package redisstream

import (
	"sync/atomic"
	"time"
)

// tenure is what this process knows by its own clock of its hold on a topic's entries:
// in a process that was stopped for longer than its lease, others may have taken them.
type tenure struct {
	lease time.Duration
	// until is when the lease ends, if nobody renews it, as a time since start.
	until atomic.Int64
	// lapses counts the renewals that came after that.
	lapses atomic.Int64
}

var start = time.Now()

// confirm notes that the lease was renewed by a call that began at a time.
func (t *tenure) confirm(began time.Time) {
	at := int64(began.Sub(start))
	if before := t.until.Load(); before > 0 && at > before {
		t.lapses.Add(1) // first: who sees the new end sees the lapse
	}
	t.until.Store(at + int64(t.lease))
}

// lapsed says whether the lease may have ended since there were so many lapses.
func (t *tenure) lapsed(before int64) bool {
	until := t.until.Load()
	return int64(time.Since(start)) > until || t.lapses.Load() != before
}
