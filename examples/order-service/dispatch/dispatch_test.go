package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/dispatch"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/memory"
)

// publisher keeps what it is given.
type publisher struct {
	commits []es.Commit
	err     error
}

func (p *publisher) Publish(_ context.Context, commits ...es.Commit) error {
	p.commits = append(p.commits, commits...)
	return p.err
}

// office is a desk and a worker with a bus between them that delivers while Send waits.
type office struct {
	desk   *dispatch.Desk
	worker *dispatch.Worker
	store  *memory.EventStore
	events publisher
	// deliver is the bus; it may deliver not at all, or more than once.
	deliver func(context.Context, es.Command) error
}

// Send implements [es.CommandSender].
func (o *office) Send(ctx context.Context, c es.Command) error { return o.deliver(ctx, c) }

func newOffice(t *testing.T) *office {
	t.Helper()
	rdb := redistest.Shared(t).Client(t)
	o := &office{store: memory.NewEventStore()}
	o.worker = dispatch.NewWorker(o.store, &o.events, rdb)
	o.deliver = func(ctx context.Context, c es.Command) error { o.handle(ctx, c); return nil }
	o.desk = dispatch.NewDesk(rdb, o)
	require.NoError(t, o.desk.Open(t.Context()))
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.desk.Listen(ctx) }()
	t.Cleanup(func() {
		end()
		require.NoError(t, <-ended)
		require.NoError(t, o.desk.Close(context.WithoutCancel(ctx)))
	})
	return o
}

func (o *office) handle(ctx context.Context, c es.Command) { _, _ = o.worker.Handle(ctx, c) }

func place(id string) es.Command {
	c := es.NewCommand(order.Type.ID(id), order.Place{Items: []string{"i1"}, Price: 990})
	c.RequestID, c.AllowCreate = "place "+id, true
	return c
}

func TestAnswerSaysWhatBecameOfTheCommand(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := order.Type.ID("o1")
	result, err := o.desk.Ask(t.Context(), place("o1"))
	require.NoError(t, err)
	require.Equal(t, es.Result{Aggregate: id, Version: 1}, result)
	require.Len(t, o.events.commits, 1, "it is published before it is answered")

	result, err = o.desk.Ask(t.Context(), place("o1"))
	require.NoError(t, err)
	require.Equal(t, es.Result{Aggregate: id, Version: 1, Duplicate: true}, result)
	require.Len(t, o.events.commits, 1, "it was published by who carried it out")

	_, err = o.desk.Ask(t.Context(), es.NewCommand(id, order.Pay{Amount: 990}))
	require.ErrorIs(t, err, es.ErrRefused)
	require.EqualError(t, err, order.ErrNotConfirmed.Error())
	require.EqualValues(t, 3, o.worker.Done())
}

// A worker dies after it has stored and before it has published; another one has the
// command delivered again.
func TestRedeliveredCommandIsPublishedAndNoDuplicate(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	dead := dispatch.NewWorker(o.store, &publisher{err: errors.New("killed")}, nil)
	o.deliver = func(ctx context.Context, c es.Command) error {
		_, err := dead.Handle(ctx, c)
		require.EqualError(t, err, "killed")
		o.handle(ctx, c)
		o.handle(ctx, c) // and again, since that one's acknowledgement was lost
		return nil
	}
	result, err := o.desk.Ask(t.Context(), place("o1"))
	require.NoError(t, err)
	require.Equal(t, es.Result{Aggregate: order.Type.ID("o1"), Version: 1}, result)
	require.Len(t, o.events.commits, 2)
	stored, err := o.store.Last(t.Context(), order.Type.ID("o1"))
	require.NoError(t, err)
	require.Equal(t, 1, stored.Version)
	for _, c := range o.events.commits {
		require.Equal(t, stored.ID, c.ID)
	}
}

func TestFailureIsAnsweredWithTheLastAttempt(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.events.err = errors.New("bus is full")
	o.deliver = func(ctx context.Context, c es.Command) error {
		for attempt := 1; attempt <= dispatch.MaxDeliveries; attempt++ {
			require.Zero(t, o.worker.Done())
			o.handle(es.WithDelivery(ctx, es.Delivery{Attempt: attempt}), c)
		}
		return nil
	}
	_, err := o.desk.Ask(t.Context(), place("o1"))
	require.EqualError(t, err, "a worker gave up: bus is full")
	require.NotErrorIs(t, err, es.ErrRefused)
}

func TestServersFaultIsNoAnswer(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ctx, end := context.WithCancel(t.Context())
	o.deliver = func(ctx context.Context, c es.Command) error {
		for _, fault := range []error{es.ErrUnavailable, es.ErrUncertain} {
			o.events.err = fault
			o.handle(es.WithDelivery(ctx, es.Delivery{Attempt: dispatch.MaxDeliveries}), c)
		}
		end()
		return nil
	}
	_, err := o.desk.Ask(ctx, place("o1"))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, o.worker.Done())
}

func TestCommandThatCannotBeSentIsAnError(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.deliver = func(context.Context, es.Command) error { return es.ErrUnavailable }
	_, err := o.desk.Ask(t.Context(), place("o1"))
	require.ErrorIs(t, err, es.ErrUnavailable)
}

func TestNobodyAsksAndNobodyHears(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var sent es.Command
	o.deliver = func(ctx context.Context, c es.Command) error { sent = c; o.handle(ctx, c); return nil }
	_, err := o.desk.Ask(t.Context(), place("o1"))
	require.NoError(t, err)
	stream := sent.Header.Get("reply_to")
	require.NotEmpty(t, stream)
	rdb := redistest.Shared(t).Client(t)
	require.LessOrEqual(t, rdb.TTL(t.Context(), stream).Val(), 10*time.Minute)
	require.Positive(t, rdb.TTL(t.Context(), stream).Val(), "it does not outlive a desk that is killed")

	require.NoError(t, o.desk.Close(t.Context()))
	_, err = o.worker.Handle(t.Context(), sent)
	require.NoError(t, err, "an answer that nobody waits for is dropped")
	require.Zero(t, rdb.Exists(t.Context(), stream).Val())

	done := o.worker.Done()
	c := place("o2")
	c.ID = "c-2"
	_, err = o.worker.Handle(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, done, o.worker.Done(), "nobody who is not a desk is answered")
	require.Equal(t, "c-2", o.events.commits[len(o.events.commits)-1].CommandID, "events are published all the same")
}

func TestDeskFailsWhereAnswersCannotBeRead(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	desk := dispatch.NewDesk(rdb, &office{})
	require.NoError(t, desk.Open(t.Context()))
	require.NoError(t, rdb.Close())
	require.ErrorIs(t, desk.Listen(t.Context()), redis.ErrClosed)
}
