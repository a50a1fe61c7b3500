package aggregate

import (
	"context"
	"sync"
	"time"

	"github.com/headwater-go/headwater/es"
)

const (
	// patience is how long a note of another publisher stands before it is taken over.
	patience = 500 * time.Millisecond
	// lookouts is how often a note is looked at; then it is left to a [Relay].
	lookouts = 6
	// maxWatched bounds the notes that are looked at.
	maxWatched = 10_000
	// carryBatch is how many notes are moved in one round trip.
	carryBatch = 256
	// carryRounds is for how long one aggregate may keep the others waiting.
	carryRounds = 4
)

// carrier goes on beside the handlers with what they published: it moves notes, publishes
// what was appended behind them, and looks after notes that others left. Its goroutine
// lives while there is something to do; what it leaves at the end, a relay finds.
type carrier struct {
	mu      sync.Mutex
	idle    chan struct{} // nil unless it runs; closed when it ends
	wake    chan struct{}
	moves   []es.Move
	more    []es.Note
	watched map[es.AggregateID]*watch
}

// watch is a look-out for a note that somebody else moves, or should.
type watch struct {
	version int // up to which it concerns us
	at      int // where it stood last, 0 = not looked yet
	looks   int
	due     time.Time
}

// carries is what the carrier needs of a repository.
type carries interface{ carry() }

func (c *carrier) move(r carries, m es.Move) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moves = append(c.moves, m)
	c.start(r)
}

func (c *carrier) watch(r carries, id es.AggregateID, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[id]
	if w == nil {
		if len(c.watched) >= maxWatched {
			return
		}
		if c.watched == nil {
			c.watched = map[es.AggregateID]*watch{}
		}
		w = &watch{due: time.Now().Add(patience)}
		c.watched[id] = w
	}
	w.version = max(w.version, version)
	c.start(r)
}

// start starts or wakes the goroutine. The caller holds mu.
func (c *carrier) start(r carries) {
	if c.idle == nil {
		c.idle, c.wake = make(chan struct{}), make(chan struct{}, 1)
		go r.carry()
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take is what is to be done now; else the wait until there is, or false at the end.
func (c *carrier) take() (moves []es.Move, notes []es.Note, due []es.AggregateID, wait time.Duration, alive bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.moves), carryBatch)
	moves, c.moves = c.moves[:n:n], c.moves[n:]
	notes, c.more = c.more, nil
	wait = patience
	for id, w := range c.watched {
		if d := time.Until(w.due); d > 0 {
			wait = min(wait, d)
		} else {
			due = append(due, id)
		}
	}
	if len(moves)+len(notes)+len(c.watched) == 0 {
		close(c.idle)
		c.idle, c.moves = nil, nil
		return nil, nil, nil, 0, false
	}
	return moves, notes, due, wait, true
}

func (c *carrier) follow(notes []es.Note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.more = append(c.more, notes...)
}

// Drain waits until nothing is left that this repository goes on with by itself, or until
// ctx is done. To call it at the end, after the subscriptions, saves a [Relay] some work.
func (r *Repository[S]) Drain(ctx context.Context) error {
	r.carrier.mu.Lock()
	idle := r.carrier.idle
	r.carrier.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Repository[S]) carry() {
	ctx := context.Background() // no handler's: it outlives them
	for {
		moves, notes, due, wait, alive := r.carrier.take()
		if !alive {
			return
		}
		if len(moves)+len(notes)+len(due) == 0 {
			select {
			case <-r.carrier.wake:
			case <-time.After(wait):
			}
			continue
		}
		notes = append(notes, r.moveAll(ctx, moves, func(n es.Note, _ error) { r.carrier.watch(r, n.Aggregate, n.Version) })...)
		notes = append(notes, r.overdue(ctx, due)...)
		more, failed := r.advance(ctx, always, notes, carryRounds)
		r.carrier.follow(more)
		for _, f := range failed {
			r.warn(ctx, unpublished, &es.Meta{Aggregate: f.Aggregate, Version: f.Version}, f.err)
			if transient(f.err) { // a relay tries the others
				r.carrier.watch(r, f.Aggregate, f.Version)
			}
		}
	}
}

// overdue looks at watched notes and returns those that are to be taken over: they stood
// unchanged for [patience].
func (r *Repository[S]) overdue(ctx context.Context, due []es.AggregateID) []es.Note {
	if len(due) == 0 {
		return nil
	}
	looks := make([]es.Move, len(due))
	for i, id := range due {
		looks[i] = es.Move{Aggregate: id, From: nowhere, Through: nowhere}
	}
	stand, _ := r.Outbox.PublishedAll(ctx, looks...)
	c := &r.carrier
	c.mu.Lock()
	defer c.mu.Unlock()
	var over []es.Note
	for i, id := range due {
		w, at := c.watched[id], stand[i]
		w.looks++
		w.due = time.Now().Add(patience)
		switch {
		case at == 0 || at > w.version, w.looks > lookouts:
			delete(c.watched, id)
		case at > 0 && at == w.at:
			delete(c.watched, id)
			over = append(over, es.Note{Aggregate: id, Version: at})
		default:
			w.at = max(at, 0)
		}
	}
	return over
}
