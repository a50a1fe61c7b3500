package redisstream

import (
	"context"
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
	name      string
	retry     string // the stream of what is replayed to the group
	group     *recovery.Group
	reads     *reading
	handled   chan *entry
	condition *condition
	tenure    tenure

	mu sync.Mutex
	// held is every entry that is this process's to handle or to acknowledge, and
	// whether its delivery was counted for it.
	held map[heldID]bool
	kept []heldID // of these, what stays pending since it cannot be handled
	last string   // the last id that was read from the topic, as far as is known
	// floor is before all that the group has not acknowledged, as the last sweep saw it;
	// "" before the first.
	floor string
}

type heldID struct{ stream, id string }

// maxKept limits what is remembered of messages that cannot be handled and stay pending.
const maxKept = 10_000

// keepPending holds an entry that stays pending for good. Of more than maxKept the first is
// forgotten: a later sweep finds it, and it comes here again.
func (t *topic) keepPending(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept = append(t.kept, heldID{e.stream, e.id}); len(t.kept) > maxKept {
		delete(t.held, t.kept[0])
		t.kept = t.kept[1:]
	}
}

func newTopic(s *subscription, c *condition, reads *reading) *topic {
	name := c.topic
	g := recovery.NewGroup(s.rdb, name, s.Group, s.Consumer)
	g.Lease, g.SharedWithWow, g.DeleteAcked = s.Lease, s.SharedWithWow, s.DeleteAcked
	if s.Observer != nil {
		g.Observer = teller{s}
	}
	return &topic{
		subscription: s, name: name, retry: rediskey.Retry(name, s.Group), group: g, reads: reads, condition: c,
		handled: make(chan *entry, 4*s.Prefetch), held: map[heldID]bool{}, tenure: tenure{lease: s.Lease},
	}
}

// take makes an entry this process's own, and queues it. One that it holds already is passed over.
func (t *topic) take(ctx context.Context, e *entry, fields recovery.Fields) {
	if !t.hold(e) {
		return
	}
	e.topic = t
	for _, f := range fields {
		e.size += len(f)
	}
	if e.bad == nil {
		e.bad = t.open(e, fields)
	}
	if t.Observer != nil {
		tell(ctx, t.subscription, es.Received{Delivery: e.delivery()})
	}
	if e.bad != nil {
		if t.Observer != nil {
			t.tellUndecodable(ctx, e)
		}
		e.reason = reasonOf(e.bad)
		e.key = t.name + "\x00\x00" + e.id // nothing waits behind what nobody can read
	}
	t.lanes.push(e)
}

// hold reports whether the entry is new to this process.
func (t *topic) hold(e *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := heldID{e.stream, e.id}
	_, again := t.held[at]
	if !again || e.raised {
		t.held[at] = e.raised || !e.recovered
	}
	return !again
}

// open decodes an entry.
func (t *topic) open(e *entry, fields recovery.Fields) (err error) {
	data, ok := fields.Get(Field)
	if !ok {
		return errNoField
	}
	defer func() {
		if p := recover(); p != nil {
			err = es.Corrupt("decoding it panics: %v", p)
		}
	}()
	// What the decoder returns may share the text, which nobody changes.
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
// themselves, until no more comes and all is acknowledged, or ctx ends.
func (t *topic) settle(ctx context.Context, noMore <-chan struct{}) {
	for {
		var e *entry
		select {
		case e = <-t.handled:
		case <-noMore:
			select {
			case e = <-t.handled:
			default:
				return
			}
		}
		batch := map[string][]*entry{e.stream: {e}}
		for n := 1; n < 100 && len(t.handled) > 0; n++ { // nobody else receives
			e := <-t.handled
			batch[e.stream] = append(batch[e.stream], e)
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
			t.can(ctx, t.condition, toSettle)
			if len(lost) > 0 {
				tell(ctx, t.subscription, es.TakenOver{Topic: t.name, Group: t.Group, IDs: lost})
				t.log.Warn(ctx, "handled entries had gone to another consumer", "topic", t.name, "group", t.Group, "ids", lost)
			}
			break
		}
		if ctx.Err() != nil {
			return
		}
		t.cannot(ctx, t.condition, toSettle, err)
		t.log.Warn(ctx, "acknowledging failed; trying on", "topic", t.name, "group", t.Group, "reason", err)
	}
	for _, e := range entries {
		t.drop(e)
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
