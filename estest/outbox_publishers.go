package estest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// bulletin is a bus that remembers in which order versions were published.
type bulletin struct {
	mu       sync.Mutex
	versions []int
}

// publish is slow, as a bus is beside a store: others append meanwhile.
func (b *bulletin) publish(version int) {
	for range 50 {
		runtime.Gosched()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.versions = append(b.versions, version)
}

// notePublishers has many writers of one aggregate who publish where they are told to,
// and go on with what follows. Nobody else publishes, and all must be out, in order.
func notePublishers(t *testing.T, k kit[OutboxStore]) {
	id := k.typ.ID("a-1")
	const writers, each = 8, 12
	var b bulletin
	require.Equal(t, writers, together(t, writers, nil, func(int) error {
		for done := 0; done < each; {
			version, err := lastVersion(t, k.store, id)
			if err != nil {
				return err
			}
			appended, err := k.store.Append(t.Context(), withNote, commitOf(id, version+1))
			if isAny(err, []error{es.ErrVersionConflict}) {
				continue
			}
			if err != nil {
				return err
			}
			done++
			for next := version + 1; appended.Publish && next != 0; {
				b.publish(next)
				if next, err = k.store.Published(t.Context(), id, next, next); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	want := []int{}
	for version := 1; version <= writers*each; version++ {
		want = append(want, version)
	}
	require.Equal(t, want, b.versions, "published in version order, each once, none missing")
	requireNotes(t, k)
}

// noteMany moves the notes of many aggregates, among them one that cannot be.
func noteMany(t *testing.T, k kit[OutboxStore]) {
	var moves []es.Move
	var want []int
	for i := range 200 {
		id := k.typ.ID(fmt.Sprintf("a-%d", i))
		requireNoted(t, k.store, true, commitsOf(id, 1, 3)...)
		moves = append(moves, es.Move{Aggregate: id, From: 1 + i%2, Through: 2 + i%3})
		switch {
		case i%2 == 1: // the note does not stand there
			want = append(want, 1)
		case 2+i%3 == 2:
			want = append(want, 3)
		default:
			want = append(want, 0)
		}
	}
	moves[100].From, want[100] = 0, -1
	next, err := k.store.PublishedAll(t.Context(), moves...)
	require.ErrorIs(t, err, es.ErrInvalid)
	require.Equal(t, want, next)
	for i, at := range want {
		requireMoved(t, k.store, moves[i].Aggregate, es.MaxVersion+1, es.MaxVersion+1, max(at, map[bool]int{true: 1}[i == 100]))
	}
	next, err = k.store.PublishedAll(t.Context())
	require.NoError(t, err)
	require.Empty(t, next)
}

func lastVersion(t *testing.T, s es.Finder, id es.AggregateID) (int, error) {
	last, err := s.Last(t.Context(), id)
	if isAny(err, []error{es.ErrNotFound}) {
		return 0, nil
	}
	return last.Version, err
}
