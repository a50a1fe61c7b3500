package sales_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/sales"
	"github.com/headwater-go/headwater/memory"
)

var (
	may  = time.Date(2019, 5, 31, 23, 0, 0, 0, time.UTC)
	june = may.Add(time.Hour)
)

// stored are an order's commits, one for each event, and the store that has them.
func stored(t *testing.T, store *memory.EventStore, id string, events ...es.EventBody) []es.Commit {
	t.Helper()
	newID := es.NewRandomIDs()
	commits := make([]es.Commit, len(events))
	for i, e := range events {
		commits[i] = es.Commit{
			ID: newID(), Aggregate: order.Type.ID(id), CommandID: newID(), RequestID: newID(), Version: i + 1,
			Events: []es.Event{es.NewEvent(newID(), e)}, CreateTime: may,
		}
	}
	_, err := store.Append(t.Context(), es.AppendOptions{}, commits...)
	require.NoError(t, err)
	return commits
}

func paid(t *testing.T, store *memory.EventStore, id string) []es.Commit {
	t.Helper()
	return stored(t, store, id, order.Placed{Price: 1250, At: may}, order.Confirmed{At: may}, order.Reminded{At: may}, order.Paid{Amount: 1250, At: june})
}

func TestStatesAndRevenueFollowTheBus(t *testing.T) {
	t.Parallel()
	store := memory.NewEventStore()
	m := sales.New(store)
	for _, c := range append(paid(t, store, "o1"), paid(t, store, "o2")[:2]...) {
		require.NoError(t, m.Hear(t.Context(), c))
	}
	require.Equal(t, sales.Figures{
		States:  map[order.Status]int{order.StatusPlaced: 0, order.StatusConfirmed: 1, order.StatusPaid: 1},
		Revenue: map[string]order.Money{"2019-06": 1250},
		Heard:   6,
	}, m.Figures())
}

// whole are the figures of one paid order.
func whole(heard, fetched int) sales.Figures {
	return sales.Figures{
		States:  map[order.Status]int{order.StatusPlaced: 0, order.StatusConfirmed: 0, order.StatusPaid: 1},
		Revenue: map[string]order.Money{"2019-06": 1250},
		Heard:   heard, Fetched: fetched,
	}
}

func TestBusMayRepeatSwapAndLose(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		versions       []int
		heard, fetched int
	}{
		"in order":  {[]int{1, 2, 3, 4}, 4, 0},
		"repeated":  {[]int{1, 1, 2, 3, 2, 4, 4}, 4, 0},
		"lost":      {[]int{1, 4}, 2, 2},
		"swapped":   {[]int{2, 1, 4, 3}, 2, 2},
		"backwards": {[]int{4, 3, 2, 1}, 1, 3},
	} {
		store := memory.NewEventStore()
		commits, m := paid(t, store, "o1"), sales.New(store)
		for _, version := range c.versions {
			require.NoError(t, m.Hear(t.Context(), commits[version-1]), what)
		}
		require.Equal(t, whole(c.heard, c.fetched), m.Figures(), what)
	}
}

func TestModelBeginsWithWhatIsStored(t *testing.T) {
	t.Parallel()
	store := memory.NewEventStore()
	commits, m := paid(t, store, "o1"), sales.New(store)
	require.NoError(t, m.Fetch(t.Context()))
	require.Equal(t, whole(0, 4), m.Figures())
	require.NoError(t, m.Hear(t.Context(), commits[3]))
	require.Equal(t, whole(0, 4), m.Figures())
}

func TestWhatTheBusNeverTellsIsFetched(t *testing.T) {
	t.Parallel()
	store := memory.NewEventStore()
	commits, m := paid(t, store, "o1"), sales.New(store)
	require.NoError(t, m.Hear(t.Context(), commits[0]))
	m.Expect(commits[0].Aggregate, 4)
	m.Expect(commits[0].Aggregate, 2)
	require.NoError(t, m.Follow(t.Context(), time.Millisecond))
	require.Equal(t, whole(1, 3), m.Figures())
}

func TestFollowWaitsForTheBus(t *testing.T) {
	t.Parallel()
	store := memory.NewEventStore()
	commits, m := paid(t, store, "o1"), sales.New(store)
	m.Expect(commits[0].Aggregate, 4)
	followed := make(chan error, 1)
	go func() { followed <- m.Follow(t.Context(), time.Hour) }()
	for _, c := range commits {
		require.Empty(t, followed)
		require.NoError(t, m.Hear(t.Context(), c))
	}
	require.NoError(t, <-followed)
	require.Equal(t, whole(4, 0), m.Figures())

	m.Expect(commits[0].Aggregate, 5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, m.Follow(ctx, time.Hour), context.Canceled)
}

var errBroken = errors.New("the server is gone")

type broken struct{ *memory.EventStore }

func (broken) Load(context.Context, es.AggregateID, es.Versions) iter.Seq2[es.Commit, error] {
	return func(yield func(es.Commit, error) bool) { yield(es.Commit{}, errBroken) }
}

func TestStoresFaultsAreReturned(t *testing.T) {
	t.Parallel()
	store := memory.NewEventStore()
	commits := paid(t, store, "o1")
	m := sales.New(broken{store})
	require.ErrorIs(t, m.Fetch(t.Context()), errBroken)
	require.ErrorIs(t, m.Hear(t.Context(), commits[1]), errBroken)
	m.Expect(commits[0].Aggregate, 1)
	require.ErrorIs(t, m.Follow(t.Context(), 0), errBroken)
	require.Zero(t, m.Figures().Heard, "nothing is applied over a gap")
}
