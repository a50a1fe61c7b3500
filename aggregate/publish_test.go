package aggregate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
)

func TestCommitIsPublishedWithItsState(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	id := r.Decider.Type.ID("c-1")
	for i := range 5 {
		c := es.NewCommand(id, add{i + 1})
		c.AllowCreate = true
		handle(t, r, c)
	}
	requireDrained(t, r)
	require.Equal(t, upTo(5), p.first(id))
	require.Equal(t, []int{1, 3, 6, 10, 15}, p.states[id])
	require.Empty(t, unpublished(t, r))
	_, err := r.Handle(t.Context(), es.NewCommand(id, add{-99}))
	require.ErrorIs(t, err, es.ErrRefused)
	require.Empty(t, unpublished(t, r))
	require.Equal(t, 5, p.count(id), "nothing is published twice where nothing fails")
}

func TestNothingIsNotedWithoutABus(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	grow(t, r, r.Decider.Type.ID("c-1"), 2)
	r.Outbox = outboxOf(store)
	require.Empty(t, unpublished(t, r))
}

func TestManyHandlersPublishInOrder(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	r.Attempts = 100
	processes := []*repository{r, peer(r), peer(r)}
	ids := []es.AggregateID{r.Decider.Type.ID("c-1"), r.Decider.Type.ID("c-2")}
	for _, id := range ids {
		leave(t, r, id, 1)
	}
	var wg sync.WaitGroup
	for i, process := range processes {
		for range 4 {
			wg.Go(func() {
				for range 20 {
					if _, err := process.Handle(t.Context(), es.NewCommand(ids[i%2], add{1})); err != nil && !errors.Is(err, es.ErrVersionConflict) {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	for _, process := range processes {
		requireDrained(t, process)
	}
	for _, id := range ids {
		s, err := r.Load(t.Context(), id)
		require.NoError(t, err)
		requirePublished(t, p, id, s.Version)
		require.Len(t, p.states[id], s.Version)
		for version, value := range p.states[id] {
			require.Equal(t, version+1, value)
		}
	}
	require.Empty(t, unpublished(t, r))
}

// Who appends behind an unpublished commit does not publish; when its publisher is gone
// somebody takes over, from the older one on.
func TestCommitBehindAnUnpublishedOneIsTakenOver(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	id := r.Decider.Type.ID("c-1")
	leave(t, r, id, 40)
	handle(t, r, es.NewCommand(id, add{1}))
	require.Zero(t, p.count(id), "not before the older ones, and not at once")
	requirePublished(t, p, id, 41)
	requireDrained(t, r)
	require.Empty(t, unpublished(t, r))
	require.Equal(t, 41, p.states[id][40])
}

func TestHotAggregateDoesNotCaptureItsPublisher(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	id := r.Decider.Type.ID("c-1")
	leave(t, r, id, 1)
	rival := peer(r)
	inside, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p.hook(func(c es.Commit) error {
		if c.Version == 1 {
			once.Do(func() { close(inside) })
			<-release
		}
		return nil
	})
	handle(t, peer(r), es.NewCommand(id, add{1})) // behind version 1: it must not publish
	handle(t, peer(r), es.NewCommand(id, add{1}))
	handle(t, rival, es.NewCommand(id, add{1}))
	<-inside // a carrier has taken over, and hangs
	handle(t, rival, es.NewCommand(id, add{1}))
	require.Zero(t, p.count(id))
	close(release)
	requirePublished(t, p, id, 5)
	requireDrained(t, rival)
}

func TestFailedPublishingFailsNoCommandAndIsMadeUpFor(t *testing.T) {
	t.Parallel()
	for what, err := range map[string]error{"unavailable": es.ErrUnavailable, "out of memory": es.ErrOutOfMemory, "uncertain": es.ErrUncertain} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, _, p := newPublisher()
			log, _ := newJournal()
			r.Logger = log
			id := r.Decider.Type.ID("c-1")
			p.hook(func(es.Commit) error { return err })
			grow(t, r, id, 3)
			require.Equal(t, []es.Note{{Aggregate: id, Version: 1}}, unpublished(t, r))
			p.hook(nil)
			requirePublished(t, p, id, 3)
			requireDrained(t, r)
			require.Empty(t, unpublished(t, r))
		})
	}
}

func TestRedeliveredCommandIsPublishedAgain(t *testing.T) {
	t.Parallel()
	r, _, p := newPublisher()
	id := r.Decider.Type.ID("c-1")
	leave(t, r, id, 1)
	first := withRequest(es.NewCommand(id, add{1}), "r-2")
	handle(t, &repository{Decider: r.Decider, Store: noting{r.Store}}, first)
	leave(t, r, id, 1)
	require.Zero(t, p.count(id))
	on := es.WithDelivery(t.Context(), es.Delivery{Attempt: 2})
	got, err := r.Handle(on, first)
	require.NoError(t, err)
	require.Equal(t, es.Result{Aggregate: id, Version: 2, Duplicate: true}, got)
	require.Equal(t, upTo(3), p.first(id), "before it is acknowledged, from the note on")
	require.Empty(t, unpublished(t, r))
	_, err = r.Handle(on, first)
	require.NoError(t, err)
	require.Equal(t, 3, p.count(id), "once published it is not published again")
}

// noticeboard is a notifier that remembers.
type noticeboard struct {
	mu      sync.Mutex
	signals []es.Signal
	seen    func() // called at each signal
}

func (n *noticeboard) Notify(_ context.Context, _ es.Header, s es.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.signals = append(n.signals, s)
	if n.seen != nil {
		n.seen()
	}
}

func (n *noticeboard) take() (got []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.signals {
		got = append(got, fmt.Sprint(s.Stage, " ", s.Version, " ", s.Code))
	}
	n.signals = nil
	return got
}

func TestWhoeverWaitsIsTold(t *testing.T) {
	t.Parallel()
	r, store, p := newPublisher()
	board := &noticeboard{}
	r.Notifier = board
	r.Snapshots = newFaulty()
	id := r.Decider.Type.ID("c-1")
	create := es.NewCreateCommand(id, add{3})
	create.ID = "create"
	board.seen = func() { require.Equal(t, 1, p.count(id), "published first") }
	handle(t, r, create)
	board.seen = nil
	require.Equal(t, []string{"PROCESSED 1 Ok", "SNAPSHOT 1 Ok"}, board.take())
	handle(t, r, create)
	require.Equal(t, []string{"PROCESSED 1 Ok", "SNAPSHOT 1 Ok"}, board.take(), "a duplicate")
	handle(t, r, es.NewCommand(id, add{0}))
	require.Equal(t, []string{"PROCESSED 1 Ok", "SNAPSHOT 1 Ok"}, board.take(), "nothing to do")
	expecting4 := es.NewCommand(id, add{1})
	expecting(4)(&expecting4)
	for what, c := range map[string]es.Command{
		"PROCESSED 1 BadRequest": es.NewCommand(id, add{-9}), "PROCESSED 0 NotFound": es.NewCommand(r.Decider.Type.ID("c-2"), add{1}),
		"PROCESSED 1 CommandExpectVersionConflict": expecting4, "PROCESSED 0 DuplicateAggregateId": es.NewCreateCommand(id, add{1}),
		"PROCESSED 0 IllegalArgument": es.NewCommand(es.AggregateID{Type: r.Decider.Type}, add{1}),
	} {
		_, err := r.Handle(t.Context(), c)
		require.Error(t, err)
		require.Equal(t, []string{what}, board.take())
	}
	for _, fault := range []error{es.ErrUnavailable, es.ErrUncertain} {
		store.before = func(es.Commit) error { return fault }
		_, err := r.Handle(t.Context(), es.NewCommand(id, add{1}))
		require.ErrorIs(t, err, fault)
		require.Empty(t, board.take(), "it is tried again: no answer yet")
	}
}

func TestRepositoryWithABusNeedsAnOutbox(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	r.Events = newPress()
	require.Panics(t, func() { _, _ = r.Handle(t.Context(), es.NewCommand(r.Decider.Type.ID("c-1"), add{1})) })
	var _ aggregate.Publishable = r
}
