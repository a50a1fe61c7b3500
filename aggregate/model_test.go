package aggregate_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/snapshot"
)

// model is what an aggregate should be, told in the plainest way.
type model struct {
	value, version int
	deleted        bool
	done           map[string]int // request id to the version it produced
}

// expect says what becomes of a command, and lets it happen.
func (m *model) expect(c es.Command) (es.Result, error) {
	result := es.Result{Aggregate: c.Aggregate, Version: m.version}
	if version, ok := m.done[c.RequestID]; ok {
		result.Version, result.Duplicate = version, true
		return result, nil
	}
	_, recovers := c.Body.(es.RecoverAggregate)
	switch {
	case c.Create && m.version > 0:
		result.Version = 0 // who creates does not look
		return result, es.ErrVersionConflict
	case c.Expected != nil && *c.Expected != m.version:
		return result, es.ErrExpectedVersion
	case m.version == 0 && !c.Create && !c.AllowCreate:
		return result, es.ErrNotFound
	case recovers && !m.deleted:
		return result, es.ErrNotDeleted
	case m.deleted && !recovers:
		return result, es.ErrDeleted
	}
	switch body := c.Body.(type) {
	case add:
		if body.By == 0 {
			return result, nil
		}
		if m.value+body.By < 0 {
			return result, errNegative
		}
		m.value += body.By
	case es.DeleteAggregate:
		m.deleted = true
	case es.RecoverAggregate:
		m.deleted = false
	}
	m.version++
	m.done[c.RequestID] = m.version
	result.Version = m.version
	return result, nil
}

// randomCommand is mostly one that makes sense.
func randomCommand(random *rand.Rand, id es.AggregateID, version, n int) es.Command {
	bodies := []es.CommandBody{add{random.IntN(9)}, add{random.IntN(9)}, add{-random.IntN(9)}, add{0}, es.DeleteAggregate{}, es.RecoverAggregate{}, es.RecoverAggregate{}}
	c := es.NewCommand(id, bodies[random.IntN(len(bodies))])
	c.ID = es.ID{Time: time.UnixMilli(1), Sequence: n}.String()
	c.RequestID = "request " + c.ID
	switch random.IntN(8) {
	case 0:
		c.Create, c.Body = true, add{1 + random.IntN(5)}
	case 1, 2:
		c.AllowCreate = true
	case 3:
		expected := max(version+random.IntN(3)-1, 1)
		c.Expected = &expected
	}
	if _, plain := c.Body.(add); !plain {
		c.AllowCreate = false
	}
	return c
}

func TestRandomCommandsGiveWhatTheModelGives(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]es.SnapshotStrategy{
		"every commit": snapshot.EveryCommit(), "every 2": snapshot.EveryVersions(2), "every 7": snapshot.EveryVersions(7),
		"the default": nil, "older": snapshot.OlderThan(time.Millisecond), "off": snapshot.Off(),
		"at random": func(_, _ es.Meta) bool { return rand.IntN(4) == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			typ, store, snapshots := newType(), memory.NewEventStore(), memory.NewSnapshotStore[counter]()
			m := &model{done: map[string]int{}}
			var sent []es.Command
			for n := range 400 {
				c := randomCommand(random, typ.ID("c-1"), m.version, n)
				if len(sent) > 0 && random.IntN(5) == 0 {
					c = sent[random.IntN(len(sent))]
				}
				sent = append(sent, c)
				want, kind := m.expect(c)
				r := &repository{Decider: deciderOf(typ), Store: store, Snapshots: snapshots, Strategy: strategy}
				got, err := r.Handle(t.Context(), c)
				require.ErrorIs(t, err, kind)
				require.Equal(t, kind != nil, errors.Is(err, es.ErrRefused))
				require.Equal(t, want, got)
				if m.version == 0 {
					continue
				}
				s, err := r.Load(t.Context(), typ.ID("c-1"))
				require.NoError(t, err)
				require.Equal(t, []any{m.value, m.version, m.deleted}, []any{s.State.Value, s.Version, s.Deleted})
			}
			require.Greater(t, m.version, 50, "much happened")
		})
	}
}
