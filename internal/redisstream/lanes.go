package redisstream

import (
	"context"
	"slices"
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
	// reserved is room for entries that are about to be pushed.
	reserved int
	limit    int // of busy and reserved
	bound    int // of parked
	// Bytes of the entries that are busy and parked, the limit of each, and the size that
	// an entry is expected to have: that of the largest of late.
	busyBytes, parkedBytes, limitBytes, size int
	waiting                                  [2]int
	turn                                     purpose // who had its turn last
	closed                                   bool
}

// purpose is what room is reserved for.
type purpose int

const (
	forReads purpose = iota
	forSweeps
)

type lane struct {
	key    string
	queue  []*entry
	begun  bool // the first entry is being handled, or was tried
	parked bool
	bytes  int // of its entries
	timer  *time.Timer
}

func newLanes(limit, limitBytes int) *lanes {
	// What comes first is taken for large.
	l := &lanes{byKey: map[string]*lane{}, limit: limit, bound: 8 * limit, limitBytes: limitBytes, size: max(limitBytes/8, 1)}
	l.work, l.room = sync.NewCond(&l.mu), sync.NewCond(&l.mu)
	return l
}

// push queues an entry behind those of its key; a recovered one before those that came
// after it in the stream and have not begun.
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
	at := len(n.queue)
	for e.recovered && at > 0 && (at > 1 || !n.begun) && before(e.id, n.queue[at-1].id) {
		at--
	}
	n.queue = slices.Insert(n.queue, at, e)
	n.bytes += e.size
	l.size = max(l.size-l.size/8, e.size, 1)
	if n.parked {
		l.parked++
		l.parkedBytes += e.size
		return
	}
	l.busy++
	l.busyBytes += e.size
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
	n.begun = true
	return n, n.queue[0]
}

// done takes the first entry off a lane and lets the next one follow.
func (l *lanes) done(n *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.bytes -= n.queue[0].size
	l.busyBytes -= n.queue[0].size
	n.queue[0] = nil
	n.queue, n.begun = n.queue[1:], false
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
	l.busyBytes -= n.bytes
	l.parkedBytes += n.bytes
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
	l.busyBytes += n.bytes
	l.parkedBytes -= n.bytes
	l.enqueue(n)
}

// reserve waits until there is room for more entries, and keeps it for the caller, until
// release; 0 once ctx is done or the lanes are closed. Reads and sweeps that both wait
// take turns.
func (l *lanes) reserve(ctx context.Context, what purpose, most int) int {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.room.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[what]++
	for !l.closed && ctx.Err() == nil && (l.free() < 1 || l.turn == what && l.waiting[1-what] > 0) {
		l.room.Wait()
	}
	l.waiting[what]--
	l.turn = what
	l.room.Broadcast()
	if l.closed || ctx.Err() != nil {
		return 0
	}
	n := min(most, l.free(), max(1, (l.limitBytes-l.busyBytes)/l.size-l.reserved))
	l.reserved += n
	return n
}

func (l *lanes) free() int {
	if l.parked >= l.bound || l.busyBytes >= l.limitBytes || l.parkedBytes >= l.limitBytes {
		return 0
	}
	return l.limit - l.busy - l.reserved
}

// release gives back room, when what came has been pushed.
func (l *lanes) release(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved -= n
	l.room.Broadcast()
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
