package memory

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/headwater-go/headwater/es"
)

type groupKey struct {
	typeKey
	name string
}

// group is how far the readers that share one topic are.
type group struct {
	// next is the first message that nobody has looked at.
	next int
	// waiting are earlier messages, in order: each behind one of its aggregate, or to be
	// tried again.
	waiting []int
	// busy are the aggregates of which a message is being handled, or waits for another try.
	busy map[es.AggregateID]bool
	// tries is what is known of the messages that were handed out and are not done.
	tries map[int]try
}

type try struct {
	failures, reader int
	failed           []es.FunctionFailure
}

// delivery is one message on its way through a handler.
type delivery[M any] struct {
	es.Delivery
	group   *group
	index   int
	message M
}

// prepare makes the groups of a subscription that do not exist yet. A broadcast has
// none before it begins.
func (b *bus[M]) prepare(s es.Subscription) error {
	err := checkSubscription(s)
	if err == nil && !s.Broadcast {
		b.mu.Lock()
		defer b.mu.Unlock()
		err = b.makeGroups(s)
	}
	if err != nil {
		return &es.Error{Op: "prepare", Err: err}
	}
	return nil
}

// join makes the groups of a reader that begins.
func (b *bus[M]) join(r *reader[M]) error {
	if err := checkSubscription(r.Subscription); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers++
	r.id = b.readers
	if r.Broadcast {
		r.Group, r.Start = fmt.Sprintf("broadcast:%s:%d", r.Group, r.id), es.FromNow
	}
	return b.makeGroups(r.Subscription)
}

func checkSubscription(s es.Subscription) error {
	if strings.TrimSpace(s.Group) == "" {
		return es.Invalid("group is blank")
	}
	if len(s.Aggregates) == 0 {
		return es.Invalid("group %q reads no aggregates", s.Group)
	}
	for i, t := range s.Aggregates {
		if err := t.Validate(); err != nil {
			return err
		}
		if slices.Contains(s.Aggregates[:i], t) {
			return es.Invalid("aggregate type %s is named twice", t)
		}
	}
	return nil
}

func (b *bus[M]) makeGroups(s es.Subscription) error {
	if s.Start == "" {
		s.Start = b.start
	}
	for _, t := range s.Aggregates {
		key := groupKey{keyOf(t), s.Group}
		if b.groups[key] != nil {
			continue
		}
		next, err := first(b.topics[key.typeKey], s.Start)
		if err != nil {
			return fmt.Errorf("group %q of %s%s: %w", s.Group, t, b.kind, err)
		}
		b.groups[key] = &group{next: next, busy: map[es.AggregateID]bool{}, tries: map[int]try{}}
	}
	return nil
}

// first is the index at which a group begins.
func first[M any](topic []stored[M], start es.Start) (int, error) {
	switch start {
	case es.FromBeginning:
		return 0, nil
	case es.FromNow:
		return len(topic), nil
	case "":
		if len(topic) > 0 {
			return 0, fmt.Errorf("%w: the topic has %d messages; set Start to es.FromBeginning or es.FromNow", es.ErrStartRequired, len(topic))
		}
		return 0, nil
	}
	time, number, _ := strings.Cut(string(start), "-")
	ms, err := strconv.ParseInt(time, 10, 64)
	n := 0
	if err == nil && number != "" {
		n, err = strconv.Atoi(number)
	}
	if err != nil {
		return 0, es.Invalid("start %q is no id of a message", start)
	}
	return sort.Search(len(topic), func(i int) bool { return topic[i].ms > ms || topic[i].ms == ms && i+1 > n }), nil
}

// take waits for a message of one of the types, which take turns at being first; nil
// when ctx is done.
func (b *bus[M]) take(ctx context.Context, r *reader[M], turn int) *delivery[M] {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ctx.Err() == nil {
		for i := range r.Aggregates {
			if d := b.pick(r, r.Aggregates[(turn+i)%len(r.Aggregates)]); d != nil {
				return d
			}
		}
		b.changed.Wait()
	}
	return nil
}

// pick takes the first message that has no earlier one of its aggregate before it.
func (b *bus[M]) pick(r *reader[M], t es.AggregateType) *delivery[M] {
	g := b.groups[groupKey{keyOf(t), r.Group}]
	topic := b.topics[keyOf(t)]
	free := func(i int) bool { return !g.busy[b.aggregateOf(topic[i].message)] }
	if at := slices.IndexFunc(g.waiting, free); at >= 0 {
		i := g.waiting[at]
		g.waiting = slices.Delete(g.waiting, at, at+1)
		return b.begin(r, t, g, i)
	}
	for g.next < len(topic) {
		i := g.next
		g.next++
		if free(i) {
			return b.begin(r, t, g, i)
		}
		g.waiting = append(g.waiting, i)
	}
	return nil
}

func (b *bus[M]) begin(r *reader[M], t es.AggregateType, g *group, i int) *delivery[M] {
	s := b.topics[keyOf(t)][i]
	before, tried := g.tries[i]
	g.tries[i] = try{before.failures, r.id, before.failed}
	g.busy[b.aggregateOf(s.message)] = true
	return &delivery[M]{group: g, index: i, message: s.message, Delivery: es.Delivery{
		Topic: t.String() + b.kind, ID: fmt.Sprintf("%d-%d", s.ms, i+1), Group: r.Group, Attempt: before.failures + 1,
		Sent: time.UnixMilli(s.ms).UTC(), Recovered: tried && before.reader != r.id, Failed: before.failed,
	}}
}

// done lets the next message of the aggregate go.
func (b *bus[M]) done(d *delivery[M]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(d.group.tries, d.index)
	b.release(d)
}

// again lets the same message come once more, before the others of its aggregate, after
// a pause, or when the reader has left.
func (b *bus[M]) again(r *reader[M], d *delivery[M], failures int, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := d.group
	known := g.tries[d.index]
	known.failures += failures
	known.failed = d.Failed
	g.tries[d.index] = known
	at, _ := slices.BinarySearch(g.waiting, d.index)
	g.waiting = slices.Insert(g.waiting, at, d.index)
	if pause <= 0 {
		b.release(d)
		return
	}
	r.parked[d] = time.AfterFunc(pause, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.unpark(r, d)
	})
}

// unpark ends the pause of a message, once.
func (b *bus[M]) unpark(r *reader[M], d *delivery[M]) {
	if timer := r.parked[d]; timer != nil {
		timer.Stop()
		delete(r.parked, d)
		b.release(d)
	}
}

// leave lets others have what waited for another try, and ends a broadcast.
func (b *bus[M]) leave(r *reader[M]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for d := range r.parked {
		b.unpark(r, d)
	}
	if r.Broadcast {
		for _, t := range r.Aggregates {
			delete(b.groups, groupKey{keyOf(t), r.Group})
		}
	}
}

func (b *bus[M]) release(d *delivery[M]) {
	delete(d.group.busy, b.aggregateOf(d.message))
	b.changed.Broadcast()
}
