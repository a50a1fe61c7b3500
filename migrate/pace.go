package migrate

import (
	"context"
	"io"
	"sync"
	"time"
)

// File holds a manifest; an *os.File is one.
type File interface {
	io.ReadWriteSeeker
	Truncate(size int64) error
}

// Outcome is how a step ended, and the exit code for it.
type Outcome int

// The outcomes.
const (
	// Clean: an audit found no keys of an older layout; another step did all it had to.
	Clean Outcome = 0
	// Migratable: an audit found keys of older layouts, and nothing that keeps them from
	// being copied.
	Migratable Outcome = 1
	// Blocked: a problem needs somebody's decision; see its code.
	Blocked Outcome = 2
	// Unfinished: the step could not look at, or do, everything. The error says why.
	Unfinished Outcome = 3
)

// Pace is the knobs that all steps have. The zero value of each is its default.
type Pace struct {
	// Rate limits the keys that are handled each second, so that others have the server
	// too; a key counts once for each 16 KiB in it. Defaults to 5000.
	Rate int
	// Parallel is how many batches are on their way at once. Defaults to 4.
	Parallel int
	// Patience is how long a server may be loading or electing a master before the step
	// ends with an error. Defaults to 5 s.
	Patience time.Duration
	// Settle is how long slots of a cluster may be moving before an audit gives up.
	// Defaults to one minute.
	Settle time.Duration
	// Progress, where set, is called after each batch, by one goroutine at a time.
	Progress func(Progress)
}

// Progress is how far a step is.
type Progress struct {
	// Step is "audit", "copy", "verify", "finish" or "rollback".
	Step string
	// Keys are the keys handled so far, Bytes what was read of them.
	Keys, Bytes int64
	// Of is how many keys there are; an audit knows it only roughly, since keys come and go.
	Of int64
	// Elapsed is the time since the step began.
	Elapsed time.Duration
}

// Left estimates the time until the end; 0 = unknown.
func (p Progress) Left() time.Duration {
	if p.Keys == 0 || p.Of <= p.Keys {
		return 0
	}
	return time.Duration(float64(p.Elapsed) / float64(p.Keys) * float64(p.Of-p.Keys))
}

const (
	defaultRate     = 5000
	defaultParallel = 4
	defaultSettle   = time.Minute
	// costBytes is what a key may hold before it counts as another one for the rate.
	costBytes = 16 << 10
)

func (p Pace) parallel() int {
	if p.Parallel > 0 {
		return p.Parallel
	}
	return defaultParallel
}

func (p Pace) settle() time.Duration {
	if p.Settle > 0 {
		return p.Settle
	}
	return defaultSettle
}

// meter counts what a step does, holds it to its rate and tells of its progress.
type meter struct {
	report func(Progress)
	each   time.Duration // what one key takes at the rate

	mu    sync.Mutex
	start time.Time
	next  time.Time // when the rate allows the next key
	state Progress
}

func newMeter(step string, p Pace, of int64) *meter {
	rate := p.Rate
	if rate <= 0 {
		rate = defaultRate
	}
	now := time.Now()
	return &meter{report: p.Progress, each: time.Second / time.Duration(rate), start: now, next: now, state: Progress{Step: step, Of: of}}
}

// passed counts keys that are done, and waits until the rate allows further ones.
func (m *meter) passed(ctx context.Context, keys int, bytes int64) error {
	m.mu.Lock()
	now := time.Now()
	m.state.Keys += int64(keys)
	m.state.Bytes += bytes
	m.state.Elapsed = now.Sub(m.start)
	if m.report != nil {
		m.report(m.state)
	}
	if behind := now.Add(-time.Second); m.next.Before(behind) {
		m.next = behind // an idle time is not made up for
	}
	m.next = m.next.Add(m.each * time.Duration(int64(keys)+bytes/costBytes))
	wait := m.next.Sub(now)
	m.mu.Unlock()
	return pause(ctx, wait)
}

// pause waits for d, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
