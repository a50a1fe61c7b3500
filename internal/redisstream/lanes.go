package redisstream

import (
	"context"
	"sync"
	"time"
)

// lanes hand entries to workers: those of one key one after another, others side by
// side. A lane whose first entry waits for another try is parked: its entries hold no
// worker and no room, up to a bound.
type lanes struct {
	mu     sync.Mutex
	work   *sync.Cond // something is ready, or closed
	room   *sync.Cond // an entry is done or parked, or closed
	byKey  map[string]*lane
	urgent []*lane // ready, and holding recovered entries: these go first
	ready  []*lane
	busy   int // entries in lanes that are not parked
	parked int
	limit  int // of busy
	bound  int // of parked
	closed bool
}

type lane struct {
	key    string
	queue  []*entry
	parked bool
	timer  *time.Timer
}

func newLanes(limit int) *lanes {
	l := &lanes{byKey: map[string]*lane{}, limit: limit, bound: 8 * limit}
	l.work, l.room = sync.NewCond(&l.mu), sync.NewCond(&l.mu)
	return l
}

// push queues an entry behind those of its key.
func (l *lanes) push(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	n := l.byKey[e.key]
	if n == nil {
		n = &lane{key: e.key}
		l.byKey[e.key] = n
	}
	n.queue = append(n.queue, e)
	if n.parked {
		l.parked++
		return
	}
	l.busy++
	if len(n.queue) == 1 {
		l.enqueue(n)
	}
}

func (l *lanes) enqueue(n *lane) {
	if n.queue[0].recovered {
		l.urgent = append(l.urgent, n)
	} else {
		l.ready = append(l.ready, n)
	}
	l.work.Signal()
}

// take is the next lane and its first entry; the lane is the caller's until done or
// park. It is nil once the lanes are closed.
func (l *lanes) take() (*lane, *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && len(l.urgent) == 0 && len(l.ready) == 0 {
		l.work.Wait()
	}
	if l.closed {
		return nil, nil
	}
	from := &l.urgent
	if len(*from) == 0 {
		from = &l.ready
	}
	n := (*from)[0]
	(*from)[0] = nil
	*from = (*from)[1:]
	return n, n.queue[0]
}

// done takes the first entry off a lane and lets the next one follow.
func (l *lanes) done(n *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.queue[0] = nil
	n.queue = n.queue[1:]
	l.busy--
	l.room.Broadcast()
	switch {
	case len(n.queue) == 0:
		delete(l.byKey, n.key)
	case !l.closed:
		l.enqueue(n)
	}
}

// park keeps a lane back for d; its first entry is tried again then.
func (l *lanes) park(n *lane, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	n.parked = true
	l.busy -= len(n.queue)
	l.parked += len(n.queue)
	l.room.Broadcast()
	n.timer = time.AfterFunc(d, func() { l.unpark(n) })
}

func (l *lanes) unpark(n *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	n.parked = false
	l.busy += len(n.queue)
	l.parked -= len(n.queue)
	l.enqueue(n)
}

// free waits until there is room for more entries, and returns how many; 0 once ctx is
// done or the lanes are closed.
func (l *lanes) free(ctx context.Context) int {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.room.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && ctx.Err() == nil && (l.busy >= l.limit || l.parked >= l.bound) {
		l.room.Wait()
	}
	if l.closed || ctx.Err() != nil {
		return 0
	}
	return l.limit - l.busy
}

// close lets no further entry begin.
func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, n := range l.byKey {
		if n.timer != nil {
			n.timer.Stop()
		}
	}
	l.work.Broadcast()
	l.room.Broadcast()
}
