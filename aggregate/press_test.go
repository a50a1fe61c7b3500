package aggregate_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

const (
	eventually = 60 * time.Second
	tick       = 10 * time.Millisecond
)

// press is a bus that remembers what was published.
type press struct {
	mu       sync.Mutex
	versions map[es.AggregateID][]int
	states   map[es.AggregateID][]int // the counter's value by version
	// before may fail the publishing of a commit, or do something before it.
	before func(c es.Commit) error
}

func newPress() *press {
	return &press{versions: map[es.AggregateID][]int{}, states: map[es.AggregateID][]int{}}
}

func (p *press) Publish(_ context.Context, commits ...es.Commit) error {
	for _, c := range commits {
		p.mu.Lock()
		before := p.before
		p.mu.Unlock()
		if before != nil {
			if err := before(c); err != nil {
				return err
			}
		}
		p.mu.Lock()
		p.versions[c.Aggregate] = append(p.versions[c.Aggregate], c.Version)
		p.mu.Unlock()
	}
	return nil
}

func (p *press) hook(before func(es.Commit) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = before
}

// statePress is the other face of a press.
type statePress struct{ *press }

func (p statePress) Publish(_ context.Context, e es.StateEvent) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, _ := e.State.(counter)
	for len(p.states[e.Aggregate]) < e.Version {
		p.states[e.Aggregate] = append(p.states[e.Aggregate], -1)
	}
	p.states[e.Aggregate][e.Version-1] = s.Value
	return nil
}

// first is the published versions of an aggregate in the order they first appeared.
func (p *press) first(id es.AggregateID) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := []int{}
	for _, v := range p.versions[id] {
		if !slices.Contains(got, v) {
			got = append(got, v)
		}
	}
	return got
}

func (p *press) count(id es.AggregateID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.versions[id])
}

func upTo(version int) []int {
	versions := []int{}
	for v := 1; v <= version; v++ {
		versions = append(versions, v)
	}
	return versions
}

// newPublisher is a repository in memory with a press, as one process has it.
func newPublisher() (*repository, *watched, *press) {
	r, store := newRepository()
	p := newPress()
	r.Events, r.States, r.Outbox = p, statePress{p}, outboxOf(store)
	return r, store, p
}

func outboxOf(w *watched) es.Outbox {
	o, _ := w.EventStore.(es.Outbox)
	return o
}

// peer is a repository of the same store and press, as another process has it.
func peer(r *repository) *repository {
	return &repository{Decider: r.Decider, Store: r.Store, Events: r.Events, States: r.States, Outbox: r.Outbox}
}

// leave stores versions with a note and publishes nothing, as who dies does.
func leave(t testing.TB, r *repository, id es.AggregateID, versions int) {
	t.Helper()
	quiet := &repository{Decider: r.Decider, Store: noting{r.Store}}
	grow(t, quiet, id, versions)
}

// noting leaves notes, whatever the repository asks for.
type noting struct{ es.EventStore }

func (n noting) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (es.Appended, error) {
	o.Note = true
	return n.EventStore.Append(ctx, o, commits...)
}

func unpublished(t testing.TB, r *repository) []es.Note {
	t.Helper()
	var notes []es.Note
	for n, err := range r.Outbox.Unpublished(t.Context(), r.Decider.Type) {
		require.NoError(t, err)
		notes = append(notes, n)
	}
	return notes
}

func requireDrained(t testing.TB, r *repository) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually)
	defer cancel()
	require.NoError(t, r.Drain(ctx))
}

// requirePublished waits until an aggregate's versions are out, and says that their first
// appearances are in order.
func requirePublished(t testing.TB, p *press, id es.AggregateID, version int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(p.first(id)) >= version }, eventually, tick, "versions of %s", id)
	require.Equal(t, upTo(version), p.first(id))
}

// relaying runs a relay of r until the test ends or stop is called.
func relaying(t testing.TB, l *aggregate.Relay) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(ctx) })
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

func relayOf(r *repository, lease *memory.Lease) *aggregate.Relay {
	l := &aggregate.Relay{Of: []aggregate.Publishable{r}, Every: 20 * time.Millisecond}
	if lease != nil {
		l.Lease = lease.Holder()
	}
	return l
}
