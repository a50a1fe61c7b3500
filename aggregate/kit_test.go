package aggregate_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

// counter is the state in these tests.
type counter struct {
	Value int   `json:"value"`
	Steps []int `json:"steps"`
}

type (
	add   struct{ By int }
	added struct{ By int }
	// give changes the owner, move the space.
	give  struct{ To string }
	given struct{ To string }
	move  struct{ To string }
	moved struct{ To string }
)

func (add) CommandName() string   { return "add" }
func (give) CommandName() string  { return "give" }
func (move) CommandName() string  { return "move" }
func (added) EventName() string   { return "added" }
func (given) EventName() string   { return "given" }
func (moved) EventName() string   { return "moved" }
func (g given) ToOwnerID() string { return g.To }
func (m moved) ToSpaceID() string { return m.To }
func (s counter) plus(n int) counter {
	return counter{s.Value + n, append(slices.Clip(s.Steps), n)}
}

var errNegative = errors.New("a counter is never negative")

func decide(s counter, c es.Command) (es.Events, error) {
	switch body := c.Body.(type) {
	case add:
		if s.Value+body.By < 0 {
			return nil, errNegative
		}
		if body.By == 0 {
			return nil, nil
		}
		return es.Events{added(body)}, nil
	case give:
		return es.Events{given(body)}, nil
	case move:
		return es.Events{moved(body)}, nil
	}
	return nil, errors.New("unknown command")
}

func evolve(s counter, e es.Event) counter {
	if body, ok := e.Body.(added); ok {
		return s.plus(body.By)
	}
	return s
}

// newType is an aggregate type that no other test has.
func newType() es.AggregateType {
	return es.AggregateType{Context: "aggregate-test", Alias: "at", Name: "counter_" + strings.ToLower(rand.Text()[:10])}
}

func typesOf(t es.AggregateType) es.Types {
	return es.Types{
		Aggregate: t,
		Commands:  []es.Type{{Body: add{}}, {Body: give{}}, {Body: move{}}},
		Events:    []es.Type{{Body: added{}}, {Body: given{}}, {Body: moved{}}},
	}
}

type repository = aggregate.Repository[counter]

func deciderOf(t es.AggregateType) aggregate.Decider[counter] {
	return aggregate.Decider[counter]{Type: t, Decide: decide, Evolve: evolve}
}

// newRepository is a repository in memory, with a store that watches.
func newRepository() (*repository, *watched) {
	store := &watched{EventStore: memory.NewEventStore()}
	return &repository{Decider: deciderOf(newType()), Store: store}, store
}

// watched counts the calls of a store, and lets a test do something before an append.
type watched struct {
	es.EventStore
	loads, loaded, appends, lookups atomic.Int64 // loaded counts commits
	before                          func(es.Commit) error
	rivals                          int // commits of others that before made
}

func (w *watched) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (es.Appended, error) {
	w.appends.Add(1)
	if w.before != nil {
		if err := w.before(commits[0]); err != nil {
			return es.Appended{}, err
		}
	}
	return w.EventStore.Append(ctx, o, commits...)
}

func (w *watched) Load(ctx context.Context, id es.AggregateID, r es.Versions) iter.Seq2[es.Commit, error] {
	w.loads.Add(1)
	return func(yield func(es.Commit, error) bool) {
		for c, err := range w.EventStore.Load(ctx, id, r) {
			w.loaded.Add(1)
			if !yield(c, err) {
				return
			}
		}
	}
}

func (w *watched) FindRequest(ctx context.Context, id es.AggregateID, request string) (es.Commit, error) {
	w.lookups.Add(1)
	return w.EventStore.FindRequest(ctx, id, request)
}

// handle carries out a command that must succeed, and returns what became of it.
func handle(t testing.TB, r *repository, c es.Command) es.Result {
	t.Helper()
	result, err := r.Handle(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, c.Aggregate, result.Aggregate)
	return result
}

// grow creates the aggregate and adds 1 until it is at a version.
func grow(t testing.TB, r *repository, id es.AggregateID, version int) {
	t.Helper()
	for range version {
		c := es.NewCommand(id, add{1})
		c.AllowCreate = true
		require.False(t, handle(t, r, c).Duplicate)
	}
}

// requireAt says what a fresh load gives.
func requireAt(t testing.TB, r *repository, id es.AggregateID, version, value int) {
	t.Helper()
	got, err := r.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, version, got.Version)
	require.Equal(t, value, got.State.Value)
}

// journal is a logger and what was logged, a line each.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func newJournal() (*slog.Logger, *journal) {
	j := &journal{}
	return slog.New(slog.NewTextHandler(j, nil)), j
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.FieldsFunc(j.text.String(), func(r rune) bool { return r == '\n' })
}

// site is an aggregate type of its own on a real server.
type site struct {
	rdb       redis.UniversalClient
	typ       es.AggregateType
	store     *eventstore.Store
	snapshots *snapshot.Store[counter]
}

func newSite(rdb redis.UniversalClient) site {
	typ := newType()
	codec := wire.JSON(typesOf(typ))
	return site{rdb, typ, eventstore.New(rdb, codec), snapshot.New[counter](rdb, codec)}
}

// repository is a new one, as another process would have it.
func (s site) repository() *repository {
	return &repository{Decider: deciderOf(s.typ), Store: s.store, Snapshots: s.snapshots, Strategy: snapshot.EveryVersions(3)}
}

func onRedis(t *testing.T, run func(t *testing.T, s site)) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) { run(t, newSite(rdb)) })
}

// subscribe hands the commands of a type to handle, in order, until the test ends.
func subscribe(t *testing.T, bus es.CommandSubscriber, typ es.AggregateType, handle func(es.Command)) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		_ = bus.Subscribe(ctx, es.Subscription{Group: "at.CommandDispatcher", Aggregates: []es.AggregateType{typ}}, func(_ context.Context, c es.Command) (es.Result, error) {
			handle(c)
			return es.Result{}, nil
		})
	})
}
