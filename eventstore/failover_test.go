package eventstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/redistest"
)

// A failover loses what the replica had not got: the next append is refused by name,
// and the same command carried out again stores its version once.
func TestFAIL02_ALostTailIsAConflictAndThenUsable(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Standalone(t), redistest.Standalone(t)
	old, promoted := master.Client(t), replica.Client(t)
	typ := newType()
	commits := commitsOf(typ.ID("a-1"), 1, 3)
	before := open(old, typ)
	add(t, before, commits[0])
	host, port := "127.0.0.1", master.Addr[len("127.0.0.1:"):]
	require.NoError(t, promoted.ReplicaOf(t.Context(), host, port).Err())
	// WAIT would do, but for Valkey 9, which counts a replica that has yet to load.
	keys := old.DBSize(t.Context()).Val()
	require.Eventually(t, func() bool { return promoted.DBSize(t.Context()).Val() == keys }, eventually, tick)
	require.NoError(t, promoted.ReplicaOf(t.Context(), "NO", "ONE").Err())
	add(t, before, commits[1]) // acknowledged, and lost

	after := open(promoted, typ)
	require.ErrorIs(t, appendOne(t, after, commits[2]), es.ErrVersionConflict, "decided on a cached version 2")
	requireStored(t, after, typ.ID("a-1"), commits[0])
	again := commitOf(typ.ID("a-1"), 2)
	again.RequestID = commits[1].RequestID
	add(t, after, again)
	require.ErrorIs(t, appendOne(t, after, commits[1]), es.ErrDuplicateRequest)
	requireStored(t, after, typ.ID("a-1"), commits[0], again)
}

// writer appends to one aggregate until told to stop, and repeats what may be repeated.
type writer struct {
	store        *eventstore.Store
	id           es.AggregateID
	version      int
	acknowledged map[string]bool // ids of commits
	longest      time.Duration   // from one success to the next
	successes    atomic.Int64
}

func (w *writer) count() int { return int(w.successes.Load()) }

func (w *writer) run(ctx context.Context, stop <-chan struct{}) error {
	w.acknowledged = map[string]bool{}
	next, last := commitOf(w.id, 1), time.Now()
	pace := time.NewTicker(500 * time.Microsecond)
	defer pace.Stop()
	for {
		select {
		case <-stop:
			return nil
		case <-pace.C:
		}
		_, err := w.store.Append(ctx, es.AppendOptions{}, next)
		switch {
		case err == nil:
			w.acknowledged[next.ID] = true
			w.successes.Add(1)
			w.longest, last = max(w.longest, time.Since(last)), time.Now()
			w.version = next.Version
			next = commitOf(w.id, w.version+1)
		case errors.Is(err, es.ErrUncertain), errors.Is(err, es.ErrUnavailable):
			if ctx.Err() != nil {
				return err
			}
		case errors.Is(err, es.ErrVersionConflict): // a failover lost what was acknowledged
			newest, err := w.store.Last(ctx, w.id)
			if errors.Is(err, es.ErrNotFound) {
				newest, err = es.Commit{}, nil
			}
			if err == nil {
				w.version = newest.Version
				next = commitOf(w.id, w.version+1)
			}
		default:
			return err
		}
	}
}

// during runs a writer beside f.
func during(t *testing.T, rdb redis.UniversalClient, f func(w *writer)) *writer {
	t.Helper()
	typ := newType()
	w := &writer{store: open(rdb, typ), id: typ.ID("a-1")}
	require.NoError(t, w.store.Ready(t.Context(), typ))
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- w.run(within(t, 2*eventually), stop) }()
	f(w)
	close(stop)
	require.NoError(t, <-ended)
	return w
}

// requireNothingDoubled loads what is there: contiguous, each request once, nothing that
// nobody sent; it returns how many acknowledged commits are missing.
func (w *writer) requireNothingDoubled(t *testing.T) (lost int) {
	t.Helper()
	requests := map[string]bool{}
	stored := map[string]bool{}
	for _, c := range collect(t, w.store.Load(t.Context(), w.id, es.Versions{})) {
		require.False(t, requests[c.RequestID])
		requests[c.RequestID], stored[c.ID] = true, true
	}
	for id := range w.acknowledged {
		if !stored[id] {
			lost++
		}
	}
	require.LessOrEqual(t, len(stored), len(w.acknowledged)+1, "at most the last one had no answer")
	return lost
}

// awaitProgress waits until the server takes appends.
func awaitProgress(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	typ := newType()
	s := open(rdb, typ)
	require.Eventually(t, func() bool { return appendOne(t, s, commitOf(typ.ID("a-1"), 1)) == nil }, eventually, tick)
}

func TestFAIL09_FAIL11_RestartsLoseNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "appendonly yes", "appendfsync always")
	rdb := server.Client(t)
	w := during(t, rdb, func(*writer) {
		for range 10 {
			awaitProgress(t, rdb)
			server.Kill(t)
			server.Start(t)
		}
		awaitProgress(t, rdb)
	})
	require.NotEmpty(t, w.acknowledged)
	require.Zero(t, w.requireNothingDoubled(t))
}

func TestFAIL11_WhoAppendsToAServerThatIsGoneIsToldSoon(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	typ := newType()
	s := open(server.Client(t), typ)
	c := commitOf(typ.ID("a-1"), 1)
	add(t, s, c)
	server.Kill(t)
	start := time.Now()
	err := appendOne(t, s, commitOf(typ.ID("a-1"), 2))
	require.ErrorIs(t, err, es.ErrUnavailable)
	require.Less(t, time.Since(start), 10*time.Second)
	server.Start(t) // empty: nothing was persisted
	require.ErrorIs(t, appendOne(t, s, commitOf(typ.ID("a-1"), 2)), es.ErrVersionConflict)
	add(t, s, c)
}

func TestFAIL10_AppendsGoOnAfterEachOfSeveralFailovers(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	rdb := s.Client(t)
	w := during(t, rdb, func(*writer) {
		for range 2 {
			s.Failover(t)
			awaitProgress(t, rdb)
		}
	})
	require.Less(t, w.longest, 15*time.Second)
	lost := w.requireNothingDoubled(t)
	t.Logf("%d commits acknowledged, %d of them lost by failovers, %v at most between two", len(w.acknowledged), lost, w.longest)
}

func TestFAIL10_AppendsGoOnAfterTheMasterWasKilled(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	rdb := s.Client(t)
	w := during(t, rdb, func(*writer) {
		awaitProgress(t, rdb)
		master := s.Master(t)
		master.Kill(t)
		s.AwaitFailover(t, master)
		awaitProgress(t, rdb)
	})
	lost := w.requireNothingDoubled(t)
	t.Logf("%d commits acknowledged, %d of them lost by the failover, %v at most between two", len(w.acknowledged), lost, w.longest)
}
