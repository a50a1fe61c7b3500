package aggregate_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/snapshot"
)

// seedVariable replays one seed of the next test.
const seedVariable = "AGGREGATE_TEST_SEED"

// world is what outlives a process: the store and the buses.
type world struct {
	typ       es.AggregateType
	store     *memory.EventStore
	snapshots *memory.SnapshotStore[counter]
	press     *press
	mu        sync.Mutex
	random    *rand.Rand
}

// life is one process: each call may be its last, before or after it is done.
type life struct {
	*world
	dead atomic.Bool
}

var errDead = fmt.Errorf("%w: the process is dead", es.ErrUnavailable)

func (l *life) do(f func() error) error {
	l.mu.Lock()
	fate := l.random.IntN(30)
	l.mu.Unlock()
	if l.dead.Load() || fate == 0 {
		l.dead.Store(true)
		return errDead
	}
	err := f()
	if fate == 1 {
		l.dead.Store(true)
		return errDead
	}
	return err
}

func (l *life) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (a es.Appended, err error) {
	err = l.do(func() (err error) { a, err = l.store.Append(ctx, o, commits...); return err })
	return a, err
}

func (l *life) Load(ctx context.Context, id es.AggregateID, r es.Versions) iter.Seq2[es.Commit, error] {
	if l.dead.Load() {
		return func(yield func(es.Commit, error) bool) { yield(es.Commit{}, errDead) }
	}
	return l.store.Load(ctx, id, r)
}

func (l *life) Last(ctx context.Context, id es.AggregateID) (es.Commit, error) {
	return l.store.Last(ctx, id)
}

func (l *life) Find(ctx context.Context, id es.AggregateID, version int) (es.Commit, error) {
	return l.store.Find(ctx, id, version)
}

func (l *life) FindRequest(ctx context.Context, id es.AggregateID, request string) (c es.Commit, err error) {
	err = l.do(func() (err error) { c, err = l.store.FindRequest(ctx, id, request); return err })
	return c, err
}

func (l *life) Publish(ctx context.Context, commits ...es.Commit) error {
	for _, c := range commits { // it may die among them
		if err := l.do(func() error { return l.press.Publish(ctx, c) }); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) Unpublished(ctx context.Context, t es.AggregateType) iter.Seq2[es.Note, error] {
	return l.store.Unpublished(ctx, t)
}

func (l *life) Published(ctx context.Context, id es.AggregateID, from, through int) (next int, err error) {
	err = l.do(func() (err error) { next, err = l.store.Published(ctx, id, from, through); return err })
	return next, err
}

func (l *life) PublishedAll(ctx context.Context, moves ...es.Move) ([]int, error) {
	next, failed := make([]int, len(moves)), []error(nil)
	for i, m := range moves {
		var err error
		if next[i], err = l.Published(ctx, m.Aggregate, m.From, m.Through); err != nil {
			next[i], failed = -1, append(failed, err)
		}
	}
	return next, errors.Join(failed...)
}

type livingStates struct{ *life }

func (l livingStates) Publish(ctx context.Context, e es.StateEvent) error {
	return l.do(func() error { return statePress{l.press}.Publish(ctx, e) })
}

func (w *world) begin() (*repository, *life) {
	l := &life{world: w}
	log, _ := newJournal()
	return &repository{
		Decider: deciderOf(w.typ), Store: l, Outbox: l, Events: l, States: livingStates{l}, Logger: log,
		Snapshots: w.snapshots, Strategy: snapshot.EveryVersions(3), Cached: 1,
	}, l
}

// Random commands and random crashes: in the end the states and what was published are
// those of a plain model. 100 seeds; a failing one is the subtest's name, and gives the same
// commands and the same crashes as far as goroutines take the same turns.
func TestCrashesAtRandomGiveWhatTheModelGives(t *testing.T) {
	t.Parallel()
	if one := os.Getenv(seedVariable); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		require.NoError(t, err)
		crashAtRandom(t, seed)
		return
	}
	for range 100 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("%s=%d", seedVariable, seed), func(t *testing.T) {
			t.Parallel()
			crashAtRandom(t, seed)
		})
	}
}

func crashAtRandom(t *testing.T, seed uint64) {
	commands := rand.New(rand.NewPCG(seed, 0))
	w := &world{typ: newType(), store: memory.NewEventStore(), snapshots: memory.NewSnapshotStore[counter](), press: newPress(), random: rand.New(rand.NewPCG(seed, 1))}
	ids := []es.AggregateID{w.typ.ID("c-1"), w.typ.ID("c-2")}
	models := []*model{{done: map[string]int{}}, {done: map[string]int{}}}
	r, l := w.begin()
	for n := range 60 {
		i := commands.IntN(2)
		c := randomCommand(commands, ids[i], models[i].version, n)
		want, kind := models[i].expect(c)
		for {
			got, err := r.Handle(t.Context(), c)
			if l.dead.Load() { // nobody heard the answer: the command is delivered again
				r, l = w.begin()
				continue
			}
			require.ErrorIs(t, err, kind, "command %d", n)
			require.Equal(t, want.Version, got.Version, "command %d", n)
			break
		}
	}
	for len(unpublished(t, r)) > 0 { // relays that die as well
		r, _ = w.begin()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_ = (&aggregate.Relay{Of: []aggregate.Publishable{r}, Every: 2 * time.Millisecond, Logger: r.Logger}).Run(ctx)
		cancel()
	}
	for i, id := range ids {
		require.Equal(t, upTo(models[i].version), w.press.first(id), "%s: first appearances are in order", id)
		require.Len(t, w.press.states[id], models[i].version)
		if models[i].version > 0 {
			s, err := (&repository{Decider: deciderOf(w.typ), Store: w.store}).Load(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, []any{models[i].value, models[i].version, models[i].deleted}, []any{s.State.Value, s.Version, s.Deleted})
			require.Equal(t, models[i].value, w.press.states[id][models[i].version-1])
		}
	}
}
