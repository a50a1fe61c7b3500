package memory

import (
	"context"
	"errors"
	"iter"

	"github.com/headwater-go/headwater/es"
)

// Unpublished implements [es.Outbox]. It yields what stood when the loop began.
func (s *EventStore) Unpublished(ctx context.Context, t es.AggregateType) iter.Seq2[es.Note, error] {
	where := es.Error{Op: "list unpublished", Aggregate: es.AggregateID{Type: t}}
	return sequence(ctx, where, same[es.Note], func() ([]es.Note, error) {
		if err := checkType(ctx, t); err != nil {
			return nil, err
		}
		return s.notes(t), nil
	})
}

func (s *EventStore) notes(t es.AggregateType) []es.Note {
	var notes []es.Note
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id, st := range s.streams[keyOf(t)] {
		if st.note != 0 {
			notes = append(notes, es.Note{Aggregate: es.AggregateID{Type: t, Tenant: st.tenant, ID: id}, Version: st.note})
		}
	}
	return notes
}

// Published implements [es.Outbox].
func (s *EventStore) Published(ctx context.Context, id es.AggregateID, from, through int) (next int, err error) {
	err = ctx.Err()
	if err == nil {
		err = id.Validate()
	}
	if err == nil && (from < 1 || through < from) {
		err = es.Invalid("there are no versions from %d to %d", from, through)
	}
	if err != nil {
		return 0, &es.Error{Op: "move note", Aggregate: id, Version: from, Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stream(id)
	if st == nil {
		return 0, nil
	}
	if st.note == from {
		st.note = 0
		if through < len(st.commits) {
			st.note = through + 1
		}
	}
	return st.note, nil
}

// PublishedAll implements [es.Outbox].
func (s *EventStore) PublishedAll(ctx context.Context, moves ...es.Move) ([]int, error) {
	next := make([]int, len(moves))
	var failed []error
	for i, m := range moves {
		var err error
		if next[i], err = s.Published(ctx, m.Aggregate, m.From, m.Through); err != nil {
			next[i], failed = -1, append(failed, err)
		}
	}
	return next, errors.Join(failed...)
}
