package aggregate_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

func TestRelayPublishesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	ids := make([]es.AggregateID, 300)
	for i := range ids {
		ids[i] = r.Decider.Type.ID(fmt.Sprint("c-", i))
		leave(t, r, ids[i], 1+i%70)
	}
	relaying(t, relayOf(r, nil))
	for i, id := range ids {
		requirePublished(t, p, id, 1+i%70)
	}
	require.Eventually(t, func() bool { return len(unpublished(t, r)) == 0 }, eventually, tick)
	for i, id := range ids {
		require.Equal(t, 1+i%70, p.states[id][i%70])
	}
}

// The mover compares with the highest stored version: an append between publishing and
// moving is never forgotten.
func TestOUT01_NoteOutlivesItsPublisher(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	id := r.Decider.Type.ID("c-1")
	leave(t, r, id, 1)
	var once sync.Once
	p.hook(func(es.Commit) error { // the relay has loaded version 1, and not published it
		once.Do(func() { leave(t, r, id, 1) })
		return nil
	})
	relaying(t, relayOf(r, nil))
	requirePublished(t, p, id, 2)
	require.Eventually(t, func() bool { return len(unpublished(t, r)) == 0 }, eventually, tick)
}

func TestOUT02_StuckNotesHideNoHealthyOne(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	log, journal := newJournal()
	healthy := r.Decider.Type.ID("healthy")
	require.NoError(t, appendPlain(t, r, healthy, 499))
	leave(t, r, healthy, 1)
	const stuck = 2000
	for i := range stuck {
		leave(t, r, r.Decider.Type.ID(fmt.Sprint("stuck-", i)), 1)
	}
	p.hook(func(c es.Commit) error {
		if c.Aggregate != healthy {
			return es.ErrTooLarge
		}
		return nil
	})
	l := relayOf(r, nil)
	l.Logger = log
	relaying(t, l)
	require.Eventually(t, func() bool { return p.count(healthy) == 1 && len(l.Stuck()) == stuck }, eventually, tick)
	for n, err := range l.Stuck() {
		require.Equal(t, 1, n.Version)
		require.ErrorIs(t, err, es.ErrTooLarge)
	}
	require.Len(t, journal.lines(), stuck, "each is named once")
	p.hook(nil)
	require.Eventually(t, func() bool { return len(l.Stuck()) == 0 && len(unpublished(t, r)) == 0 }, eventually, tick, "they go on by themselves once they can")
}

// appendPlain stores commits that nobody notes.
func appendPlain(t testing.TB, r *repository, id es.AggregateID, n int) error {
	quiet := &repository{Decider: r.Decider, Store: r.Store}
	grow(t, quiet, id, n)
	return nil
}

func TestOUT03_OneBadCommitLosesNoOther(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	id, other := r.Decider.Type.ID("c-1"), r.Decider.Type.ID("c-2")
	leave(t, r, id, 10)
	leave(t, r, other, 10)
	p.hook(func(c es.Commit) error {
		if c.Aggregate == id && c.Version == 3 {
			return es.ErrInvalid
		}
		return nil
	})
	l := relayOf(r, nil)
	log, journal := newJournal()
	l.Logger = log
	relaying(t, l)
	requirePublished(t, p, other, 10)
	require.Eventually(t, func() bool { return len(l.Stuck()) == 1 }, eventually, tick)
	require.ErrorIs(t, l.Stuck()[es.Note{Aggregate: id, Version: 3}], es.ErrInvalid)
	require.Equal(t, upTo(2), p.first(id), "what is before it is out, what is behind it waits")
	require.Contains(t, journal.lines()[0], "version=3")
	require.Equal(t, []es.Note{{Aggregate: id, Version: 3}}, unpublished(t, r))
}

// A relay that was stopped past its lease publishes nothing more; what it does publish
// late is a double.
func TestOUT04_RelayPausedPastItsLease(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	ids := make([]es.AggregateID, 40)
	for i := range ids {
		ids[i] = r.Decider.Type.ID(fmt.Sprint("c-", i))
		leave(t, r, ids[i], 40)
	}
	var lease memory.Lease
	first, second := relayOf(r, &lease), relayOf(r, &lease)
	hanging := newPress() // the first relay's way to the bus hangs at its first commit
	inside, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hanging.hook(func(es.Commit) error { once.Do(func() { close(inside) }); <-release; return nil })
	slow := peer(r)
	slow.Events = both{hanging, p}
	first.Of = []aggregate.Publishable{slow}
	stop := relaying(t, first)
	<-inside
	relaying(t, second)
	for _, id := range ids {
		requirePublished(t, p, id, 40)
	}
	require.Eventually(t, func() bool { return len(unpublished(t, r)) == 0 }, eventually, tick)
	close(release)
	require.Eventually(t, func() bool { return len(hanging.aggregates()) > 0 }, eventually, tick)
	stop()
	require.LessOrEqual(t, len(hanging.aggregates()), 32, "no more than it had in hand")
	for _, id := range ids {
		require.Equal(t, upTo(40), p.first(id))
	}
}

// both publishes to one after the other.
type both [2]es.EventPublisher

func (b both) Publish(ctx context.Context, commits ...es.Commit) error {
	return errors.Join(b[0].Publish(ctx, commits...), b[1].Publish(ctx, commits...))
}

// aggregates is all aggregates that anything was published of.
func (p *press) aggregates() (ids []es.AggregateID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.versions {
		ids = append(ids, id)
	}
	return ids
}

func TestOUT05_LaterVersionsWaitForTheOneThatFails(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]error{"once": es.ErrUnavailable, "for ever": es.ErrTooLarge} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, _, p := newPublisher()
			log, _ := newJournal()
			r.Logger = log
			id, other := r.Decider.Type.ID("c-1"), r.Decider.Type.ID("c-2")
			leave(t, r, id, 2)
			leave(t, r, other, 2)
			var failures atomic.Int64
			p.hook(func(c es.Commit) error {
				if c.Aggregate == id && c.Version == 1 && (what == "for ever" || failures.Add(1) == 1) {
					return fault
				}
				return nil
			})
			relays := []*aggregate.Relay{relayOf(r, nil), relayOf(peer(r), nil)}
			for _, l := range relays {
				l.Logger = log
				relaying(t, l)
			}
			requirePublished(t, p, other, 2)
			handle(t, r, es.NewCommand(id, add{1}))
			if what == "once" {
				requirePublished(t, p, id, 3)
				return
			}
			require.Eventually(t, func() bool { return len(relays[0].Stuck()) == 1 }, eventually, tick)
			require.Zero(t, p.count(id), "nothing overtakes it")
		})
	}
}

// Who holds the lease dies without a word: another goes on once it has run out.
func TestOUT06_LeaseOfADeadRelayRunsOut(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	for i := range 200 {
		leave(t, r, r.Decider.Type.ID(fmt.Sprint("c-", i)), 1)
	}
	var lease memory.Lease
	held, err := lease.Holder().Hold(t.Context(), 200*time.Millisecond) // and dies
	require.NoError(t, err)
	require.True(t, held)
	began := time.Now()
	relaying(t, relayOf(r, &lease))
	require.Eventually(t, func() bool { return len(unpublished(t, r)) == 0 }, eventually, tick)
	require.Len(t, p.aggregates(), 200)
	require.GreaterOrEqual(t, time.Since(began), 190*time.Millisecond, "not while the other may live")
}

func TestOnlyOneRelayLooks(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	var lease memory.Lease
	looks := make([]*counting, 3)
	stops := make([]func(), 3)
	for i := range looks {
		looks[i] = &counting{Outbox: r.Outbox}
		other := peer(r)
		other.Outbox = looks[i]
		stops[i] = relaying(t, relayOf(other, &lease))
	}
	require.Eventually(t, func() bool { return slices.ContainsFunc(looks, func(c *counting) bool { return c.n.Load() >= 5 }) }, eventually, tick)
	holders := 0
	for i, c := range looks {
		if c.n.Load() > 0 {
			holders++
			stops[i]()
		}
	}
	require.Equal(t, 1, holders)
	id := r.Decider.Type.ID("c-1")
	leave(t, r, id, 1)
	requirePublished(t, p, id, 1) // another took over, since the lease was given back
}

type counting struct {
	es.Outbox
	n atomic.Int64
}

func (c *counting) Unpublished(ctx context.Context, t es.AggregateType) iter.Seq2[es.Note, error] {
	c.n.Add(1)
	return c.Outbox.Unpublished(ctx, t)
}
