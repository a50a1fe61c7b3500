package aggregate

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/headwater-go/headwater/es"
)

// Relay publishes the commits that were stored and never published, since their
// publisher died or could not reach the bus: those of every note that stood unchanged in
// two looks. Run it in one process at least; with a Lease one of many looks at a time.
// Its fields must not change once it runs.
type Relay struct {
	// Of are the repositories whose commits it publishes, each with Events.
	Of []Publishable
	// Lease lets one process look at a time; all relays of the same repositories share it.
	// Defaults to none: every relay looks, which is safe, and costs each its looks.
	Lease es.Lease
	// Every is the pause between looks. Defaults to 5 s. The lease lasts three times as long.
	Every time.Duration
	// Logger hears of commits that cannot be published, once for each. Defaults to slog.Default().
	Logger *slog.Logger

	mu    sync.Mutex
	stuck map[es.AggregateID]*stuck
	seen  map[es.AggregateID]int // notes of the last look
	renew time.Time              // when the lease is to be renewed
	held  bool
}

// Publishable is what a [Relay] needs of a [Repository]; there is no other.
type Publishable interface {
	notes(ctx context.Context) iter.Seq2[es.Note, error]
	advance(ctx context.Context, may func() bool, notes []es.Note, rounds int) (more []es.Note, failed []unsent)
}

// stuck is a note that could not be published: it holds up its own aggregate only, and is
// tried again after ever more looks.
type stuck struct {
	version, failures, pause int
	err                      error
}

// maxPause is after how many looks at most a stuck note is tried again.
const maxPause = 60

func (r *Repository[S]) notes(ctx context.Context) iter.Seq2[es.Note, error] {
	r.once.Do(r.defaults)
	return r.Outbox.Unpublished(ctx, r.Decider.Type)
}

// Run looks until ctx is done, then gives the lease back and returns nil. What fails is
// logged and tried again.
func (l *Relay) Run(ctx context.Context) error {
	every := time.NewTicker(l.every())
	defer every.Stop()
	defer l.giveBack(context.WithoutCancel(ctx))
	for {
		l.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

// Stuck are the notes that could not be published when they were tried last, and why.
func (l *Relay) Stuck() map[es.Note]error {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[es.Note]error{}
	for id, s := range l.stuck {
		found[es.Note{Aggregate: id, Version: s.version}] = s.err
	}
	return found
}

func (l *Relay) every() time.Duration {
	if l.Every == 0 {
		return 5 * time.Second
	}
	return l.Every
}

func (l *Relay) log() *slog.Logger {
	if l.Logger == nil {
		return slog.Default()
	}
	return l.Logger
}

// may reports that this relay may publish: it holds the lease, which it renews in between.
// A process that was stopped past its lease finds out before it publishes more.
func (l *Relay) may(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	if l.Lease == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !l.held || now.After(l.renew) {
		held, err := l.Lease.Hold(ctx, 3*l.every())
		if err != nil && ctx.Err() == nil {
			l.log().WarnContext(ctx, "lease of the relay was not renewed; trying on", "reason", err)
		}
		if l.held && err == nil && !held {
			l.log().WarnContext(ctx, "lease of the relay is lost")
		}
		l.held, l.renew = held && err == nil, now.Add(l.every()/2)
	}
	return l.held
}

func (l *Relay) giveBack(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _ = l.Lease.Hold(ctx, time.Millisecond) // else it runs out
		l.held = false
	}
}

// look takes over the notes that stand where they stood at the last look.
func (l *Relay) look(ctx context.Context) {
	l.mu.Lock()
	l.held = false // each look asks
	l.mu.Unlock()
	if !l.may(ctx) {
		l.seen = nil
		return
	}
	before := l.seen
	l.seen = map[es.AggregateID]int{}
	for _, r := range l.Of {
		l.lookAt(ctx, r, before)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.stuck {
		if _, stands := l.seen[id]; !stands {
			delete(l.stuck, id) // somebody published it, or purged it
		}
	}
}

func (l *Relay) lookAt(ctx context.Context, r Publishable, before map[es.AggregateID]int) {
	var over []es.Note
	for n, err := range r.notes(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				l.log().WarnContext(ctx, "looking for unpublished commits failed; trying on", "reason", err)
			}
			continue
		}
		l.seen[n.Aggregate] = n.Version
		if before[n.Aggregate] != n.Version || l.pauses(n) {
			continue
		}
		if over = append(over, n); len(over) == carryBatch {
			l.publish(ctx, r, over)
			over = nil
		}
	}
	l.publish(ctx, r, over)
}

func (l *Relay) publish(ctx context.Context, r Publishable, notes []es.Note) {
	tried := slices.Clone(notes)
	for len(notes) > 0 && l.may(ctx) {
		var failed []unsent
		notes, failed = r.advance(ctx, func() bool { return l.may(ctx) }, notes, carryRounds)
		for _, f := range failed {
			l.failed(ctx, f)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range tried { // what moved on is stuck no longer
		if s := l.stuck[n.Aggregate]; s != nil && s.pause == 0 {
			delete(l.stuck, n.Aggregate)
		}
	}
}

// pauses reports that a stuck note is not to be tried at this look.
func (l *Relay) pauses(n es.Note) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stuck[n.Aggregate]
	if s == nil || s.version != n.Version {
		return false
	}
	s.pause--
	return s.pause > 0
}

func (l *Relay) failed(ctx context.Context, f unsent) {
	if transient(f.err) {
		if ctx.Err() == nil {
			l.log().WarnContext(ctx, "publishing failed; trying on", "aggregate", f.Aggregate, "version", f.Version, "reason", f.err)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stuck[f.Aggregate]
	if s == nil || s.version != f.Version {
		s = &stuck{version: f.Version}
		if l.stuck == nil {
			l.stuck = map[es.AggregateID]*stuck{}
		}
		l.stuck[f.Aggregate] = s
		l.log().WarnContext(ctx, "a commit cannot be published and holds up its aggregate", "aggregate", f.Aggregate, "version", f.Version, "reason", f.err)
	}
	s.err = f.err
	s.failures++
	s.pause = min(1<<min(s.failures, 10), maxPause)
	l.seen[f.Aggregate] = f.Version
}
