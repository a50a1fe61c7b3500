package redisstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/recovery"
)

// topic is what a subscription does with one of its topics.
type topic struct {
	*subscription
	name    string
	retry   string // the stream of what is replayed to the group
	group   *recovery.Group
	reads   *reading
	handled chan *entry

	mu   sync.Mutex
	held map[heldID]struct{} // every entry that is this process's to handle or to acknowledge
	last string              // the last id read from the topic
}

type heldID struct{ stream, id string }

func newTopic(s *subscription, name string, reads *reading) *topic {
	g := recovery.NewGroup(s.rdb, name, s.Group, s.Consumer)
	g.Lease, g.SharedWithWow = s.Lease, s.SharedWithWow
	return &topic{
		subscription: s, name: name, retry: rediskey.Retry(name, s.Group), group: g, reads: reads,
		handled: make(chan *entry, 4*s.Prefetch), held: map[heldID]struct{}{},
	}
}

// take makes an entry this process's own, and queues it. One that it holds already is passed over.
func (t *topic) take(e *entry, fields recovery.Fields) {
	at := heldID{e.stream, e.id}
	t.mu.Lock()
	_, again := t.held[at]
	t.held[at] = struct{}{}
	t.mu.Unlock()
	if again {
		return
	}
	e.topic = t
	if e.bad == nil {
		e.bad = t.open(e, fields)
	}
	if e.bad != nil {
		e.key = t.name + "\x00\x00" + e.id // nothing waits behind what nobody can read
	}
	t.lanes.push(e)
}

// open decodes an entry.
func (t *topic) open(e *entry, fields recovery.Fields) (err error) {
	data, ok := fields.Get(Field)
	if !ok {
		return es.Corrupt("the entry has no field %q", Field)
	}
	// The decoder keeps nothing of the data, so no copy is made of it.
	e.msg, e.aggregate, err = t.decode(unsafe.Slice(unsafe.StringData(data), len(data))) //nolint:gosec // read only
	e.key = t.name + "\x00" + e.aggregate
	return err
}

func (t *topic) drop(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, heldID{e.stream, e.id})
}

func (t *topic) holds(stream, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.held[heldID{stream, id}]
	return ok
}

// settle acknowledges what was handled, in as large batches as come together by
// themselves, until handled is closed and empty.
func (t *topic) settle(ctx context.Context) {
	for e := range t.handled {
		batch := map[string][]*entry{e.stream: {e}}
		for n := 1; n < 100; n++ {
			select {
			case e, ok := <-t.handled:
				if ok {
					batch[e.stream] = append(batch[e.stream], e)
					continue
				}
			default:
			}
			break
		}
		for stream, entries := range batch {
			t.ack(ctx, stream, entries)
		}
	}
}

// ack tries until it succeeds or ctx ends: what is not acknowledged then is handled
// again by whoever recovers it.
func (t *topic) ack(ctx context.Context, stream string, entries []*entry) {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.id
	}
	for wait := time.Duration(0); ; wait = min(2*wait+50*time.Millisecond, time.Second) {
		if wait > 0 && !pause(ctx, wait) {
			return
		}
		lost, err := t.group.Ack(ctx, stream, ids)
		if err == nil {
			if len(lost) > 0 {
				t.log.Warn(ctx, "handled entries had gone to another consumer", "topic", t.name, "group", t.Group, "ids", lost)
			}
			break
		}
		if ctx.Err() != nil {
			return
		}
		t.log.Warn(ctx, "acknowledging failed; trying on", "topic", t.name, "group", t.Group, "reason", err)
	}
	for _, e := range entries {
		t.drop(e)
	}
}

// keep renews the lease, and looks for what dead consumers left, until the
// subscription has stopped; the looks end with ctx.
func (t *topic) keep(ctx, lasting context.Context) {
	renew := time.NewTicker(t.Lease / 3)
	defer renew.Stop()
	sweep := time.NewTimer(jitter(t.Sweep))
	defer sweep.Stop()
	tidy := time.NewTimer(jitter(time.Minute))
	defer tidy.Stop()
	for {
		select {
		case <-lasting.Done():
			return
		case <-renew.C:
			t.renew(lasting)
		case <-sweep.C:
			if ctx.Err() == nil && !t.NoRecovery {
				t.sweep(ctx)
			}
			sweep.Reset(t.Sweep/2 + jitter(t.Sweep))
		case <-tidy.C:
			if ctx.Err() == nil {
				t.tidy(ctx)
			}
			tidy.Reset(time.Minute/2 + jitter(time.Minute))
		}
	}
}

func (t *topic) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.Lease/3)
	defer cancel()
	if err := t.group.Renew(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.log.Warn(ctx, "lease was not renewed; trying on", "topic", t.name, "group", t.Group, "reason", err)
	}
}

func (t *topic) sweep(ctx context.Context) {
	for _, stream := range []string{t.name, t.retry} {
		room := t.lanes.free(ctx)
		if room == 0 {
			return
		}
		swept, err := t.group.Sweep(ctx, stream, min(room, 100), func(id string) bool { return t.holds(stream, id) }, func(entries []recovery.Entry) {
			for _, e := range entries {
				t.take(&entry{stream: stream, id: e.ID, failures: e.Failures, recovered: true}, e.Fields)
			}
		})
		if len(swept.Gone) > 0 {
			t.log.Warn(ctx, "pending entries are no longer in the stream", "topic", t.name, "group", t.Group, "ids", swept.Gone)
		}
		if err != nil && ctx.Err() == nil {
			t.heal(ctx, "looking for entries of dead consumers failed; trying on", err)
		}
	}
}

// tidy removes consumers that are gone for good, and letters that are over their age.
func (t *topic) tidy(ctx context.Context) {
	if _, err := recovery.Reap(ctx, t.rdb, t.name, recovery.ReapOptions{}); err != nil && ctx.Err() == nil {
		t.log.Warn(ctx, "reaping dead consumers failed; trying on", "topic", t.name, "group", t.Group, "reason", err)
	}
	expired, err := recovery.NewDeadLetters(t.rdb).Expire(ctx, recovery.Retention{}, t.name)
	if err != nil && ctx.Err() == nil {
		t.log.Warn(ctx, "removing old dead letters failed; trying on", "topic", t.name, "group", t.Group, "reason", err)
	}
	for _, e := range expired {
		t.log.Warn(ctx, "dead letters were removed", "topic", t.name, "group", t.Group, "too old", e.TooOld, "too many", e.TooMany)
	}
}

// leave gives back what was not handled, and ends the lease, so that peers take over at
// their next sweep.
func (t *topic) leave(ctx context.Context) {
	left := map[string][]string{}
	for at := range t.held {
		left[at.stream] = append(left[at.stream], at.id)
	}
	for stream, ids := range left {
		if err := t.group.GiveBack(ctx, stream, ids); err != nil {
			t.log.Warn(ctx, "entries were not given back; they will be recovered", "topic", t.name, "group", t.Group, "reason", err)
		}
	}
	if err := t.group.Leave(ctx); err != nil {
		t.log.Warn(ctx, "lease was not ended; it runs out", "topic", t.name, "group", t.Group, "reason", err)
	}
	if t.Broadcast {
		t.tidy(ctx)
	}
}

func jitter(d time.Duration) time.Duration { return rand.N(d) } //nolint:gosec // not a secret

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
