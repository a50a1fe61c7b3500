package aggregate

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/headwater-go/headwater/es"
)

// longReplay is how many commits a load applies before it must wait for its turn: most
// loads end earlier, and notice nothing.
const longReplay = 1000

// errWaited: while the load waited for its turn, another may have left a snapshot.
var errWaited = errors.New("another load was under way")

// turns lets one long load of each aggregate go on at a time. Loads do not share their
// state instead, since whoever gets one may change what its maps and slices hold.
type turns struct {
	mu sync.Mutex
	of map[es.AggregateID]*queue
}

// queue is free while its channel is empty; who waits is served in order.
type queue struct {
	taken chan struct{}
	users int // who holds it or waits; it goes with the last
}

// turn is that of one load.
type turn struct {
	turns *turns
	id    es.AggregateID
	queue *queue // nil unless it is held
}

// pass hands commits on; from the long'th on it holds the turn. Where it had to wait for
// it, and again says that a new beginning may be shorter, it ends with [errWaited].
func (t *turn) pass(ctx context.Context, again bool, commits iter.Seq2[es.Commit, error]) iter.Seq2[es.Commit, error] {
	return func(yield func(es.Commit, error) bool) {
		n := 0
		for c, err := range commits {
			if n++; n > longReplay && t.queue == nil && err == nil {
				var waited bool
				if waited, err = t.begin(ctx); err == nil && waited && again {
					err = errWaited
				}
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

func (t *turn) begin(ctx context.Context) (waited bool, err error) {
	q := t.turns.join(t.id)
	select {
	case q.taken <- struct{}{}:
	default:
		waited = true
		select {
		case q.taken <- struct{}{}:
		case <-ctx.Done():
			t.turns.leave(t.id, q)
			return true, ctx.Err()
		}
	}
	t.queue = q
	return waited, nil
}

// end lets the next one in.
func (t *turn) end() {
	if t.queue != nil {
		<-t.queue.taken
		t.turns.leave(t.id, t.queue)
	}
}

func (t *turns) join(id es.AggregateID) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.of[id]
	if q == nil {
		if t.of == nil {
			t.of = map[es.AggregateID]*queue{}
		}
		q = &queue{taken: make(chan struct{}, 1)}
		t.of[id] = q
	}
	q.users++
	return q
}

func (t *turns) leave(id es.AggregateID, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(t.of, id)
	}
}
