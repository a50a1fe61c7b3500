package estest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var deliveryChecks = []busCheck{
	{"a message arrives with its id and what is known of its delivery", busArrives},
	{"ten messages arrive", busTen},
	{"a thousand messages arrive, each once, those of an aggregate in order", busThousand},
	{"every group gets every message", busGroups},
	{"the subscribers of a group share its messages", busShares},
	{"the messages of an aggregate follow one another", busFollows},
	{"different aggregates are handled side by side", busSideBySide},
	{"several aggregate types in one subscription", busTypes},
	{"any id", busOddIDs},
}

func busArrives(t *testing.T, k busKit) {
	s := k.subscription()
	r := k.read(t, s, nil)
	sent := k.letters("a-1", 1)
	k.sendAll(t, sent...)
	got := r.wait(t, 1)[0]
	require.Equal(t, sent[0], got.letter)
	require.NotEmpty(t, got.ID)
	require.WithinDuration(t, time.Now(), got.Sent, time.Minute)
	got.Delivery.ID, got.Sent = "", time.Time{}
	require.Equal(t, es.Delivery{Topic: k.typ.String() + k.kind, Group: s.Group, Attempt: 1}, got.Delivery)
}

func busTen(t *testing.T, k busKit) {
	r := k.read(t, k.subscription(), nil)
	sent := k.letters("a-1", 10)
	k.sendAll(t, sent...)
	require.Equal(t, sent, lettersOf(r.wait(t, 10)))
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, attemptsOf(r.calls()))
}

func busThousand(t *testing.T, k busKit) {
	const aggregates, each = 20, 50
	s := k.subscription()
	require.NoError(t, k.prepare(t.Context(), s))
	r := k.read(t, s, nil)
	sent := map[es.AggregateID][]letter{}
	var senders sync.WaitGroup
	for i := range aggregates {
		letters := k.letters(fmt.Sprint("a-", i), each)
		sent[letters[0].aggregate] = letters
		senders.Go(func() {
			for _, l := range letters {
				if err := k.send(t.Context(), l); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	got := map[es.AggregateID][]letter{}
	for _, c := range r.wait(t, aggregates*each) {
		got[c.aggregate] = append(got[c.aggregate], c.letter)
	}
	require.Equal(t, sent, got)
}

func busGroups(t *testing.T, k busKit) {
	early := k.read(t, k.subscription(), nil)
	sent := k.letters("a-1", 10)
	k.sendAll(t, sent...)
	require.Equal(t, sent, lettersOf(early.wait(t, 10)))
	require.Equal(t, sent, lettersOf(k.read(t, k.subscription(), nil).wait(t, 10)), "also one that comes later, from the beginning")
}

func busShares(t *testing.T, k busKit) {
	s := k.subscription()
	s.Workers, s.Prefetch = 1, 1
	require.NoError(t, k.prepare(t.Context(), s))
	var both sync.WaitGroup
	both.Add(2)
	reader := func() *reader {
		var once sync.Once
		return k.read(t, s, func(context.Context, received) error {
			once.Do(func() {
				both.Done()
				both.Wait() // the rest is handled when each of them has one
			})
			return nil
		})
	}
	first, second := reader(), reader()
	var sent []letter
	for i := range 10 {
		sent = append(sent, k.letters(fmt.Sprint("a-", i), 1)...)
	}
	k.sendAll(t, sent...)
	eventually(t, func() bool { return len(first.calls())+len(second.calls()) >= len(sent) })
	fence := k.letters("fence", 1)
	k.sendAll(t, fence...)
	eventually(t, func() bool { return len(first.calls())+len(second.calls()) > len(sent) })
	require.ElementsMatch(t, append(sent, fence...), append(lettersOf(first.calls()), lettersOf(second.calls())...))
	require.NotEmpty(t, first.calls())
	require.NotEmpty(t, second.calls())
}

func busFollows(t *testing.T, k busKit) {
	const aggregates, each = 5, 40
	var mu sync.Mutex
	busy, last := map[string]bool{}, map[string]int{}
	s := k.subscription()
	r := k.read(t, s, func(_ context.Context, c received) error {
		mu.Lock()
		if id := c.aggregate.ID; busy[id] || c.number != last[id]+1 {
			t.Errorf("%s: message %d after %d, while one is handled: %t", id, c.number, last[id], busy[id])
		}
		busy[c.aggregate.ID], last[c.aggregate.ID] = true, c.number
		mu.Unlock()
		for range 50 {
			runtime.Gosched() // the work: others get their chance to come too early
		}
		mu.Lock()
		defer mu.Unlock()
		busy[c.aggregate.ID] = false
		return nil
	})
	for n := range each {
		for i := range aggregates {
			require.NoError(t, k.send(t.Context(), letter{fmt.Sprint(i, "-", n), k.typ.ID(fmt.Sprint("a-", i)), n + 1}))
		}
	}
	r.wait(t, aggregates*each)
}

func busSideBySide(t *testing.T, k busKit) {
	s := k.subscription()
	s.Workers = 3
	var all sync.WaitGroup
	all.Add(s.Workers)
	r := k.read(t, s, func(context.Context, received) error {
		all.Done()
		all.Wait() // each handler waits for the others
		return nil
	})
	for i := range s.Workers {
		k.sendAll(t, k.letters(fmt.Sprint("a-", i), 1)...)
	}
	r.wait(t, s.Workers)
}

func busTypes(t *testing.T, k busKit) {
	types := []es.AggregateType{newType(), newType(), newType()}
	types[2].Context, types[2].Alias = types[2].Name+"-service", types[2].Name
	b := k.open(types...)
	first := newSubscription(types[0])
	require.NoError(t, b.prepare(t.Context(), first))
	all := first
	all.Aggregates = types
	require.NoError(t, b.prepare(t.Context(), all), "the group of the first type exists already")
	var sent []letter
	for i, typ := range types {
		sent = append(sent, letter{fmt.Sprint("m-", i), typ.ID("the same"), 1})
	}
	b.sendAll(t, sent...)
	r := b.read(t, all, nil)
	got := r.wait(t, len(types))
	require.ElementsMatch(t, sent, lettersOf(got))
	for _, c := range got {
		require.Equal(t, c.aggregate.Type.String()+k.kind, c.Topic)
	}
}

func busOddIDs(t *testing.T, k busKit) {
	var sent []letter
	for i, id := range oddIDs() {
		sent = append(sent, letter{id, k.typ.ID(id).InTenant(oddIDs()[len(oddIDs())-1-i]), 1})
	}
	k.sendAll(t, sent...)
	got := k.read(t, k.subscription(), nil).wait(t, len(sent))
	require.ElementsMatch(t, sent, lettersOf(got))
}

func attemptsOf(calls []received) []int {
	attempts := []int{}
	for _, c := range calls {
		attempts = append(attempts, c.Attempt)
	}
	return attempts
}
