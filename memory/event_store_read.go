package memory

import (
	"context"
	"iter"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/headwater-go/headwater/es"
)

// commits is what is stored of an aggregate now; the slice is never written again.
func (s *EventStore) commits(ctx context.Context, id es.AggregateID) ([]es.Commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := id.Validate(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if st := s.stream(id); st != nil {
		return st.commits, nil
	}
	return nil, nil
}

// Load implements [es.Loader]. It yields what was stored when the loop began.
func (s *EventStore) Load(ctx context.Context, id es.AggregateID, r es.Versions) iter.Seq2[es.Commit, error] {
	where := es.Error{Op: "load", Aggregate: id}
	return sequence(ctx, where, copyCommit, func() ([]es.Commit, error) {
		commits, err := s.commits(ctx, id)
		if err != nil {
			return nil, err
		}
		return cut(commits, r)
	})
}

// sequence yields a copy of each item found; the first error, placed, ends it.
func sequence[T any](ctx context.Context, where es.Error, copied func(T) T, find func() ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		items, err := find()
		for i := range items {
			if err = ctx.Err(); err != nil {
				break
			}
			if !yield(copied(items[i]), nil) {
				return
			}
		}
		if err != nil {
			var none T
			placed := where
			placed.Err = err
			yield(none, &placed)
		}
	}
}

func cut(commits []es.Commit, r es.Versions) ([]es.Commit, error) {
	if r.From < 0 || r.To < 0 || (r.To > 0 && r.To < r.From) {
		return nil, es.Invalid("there are no versions from %d to %d", r.From, r.To)
	}
	if r.To > 0 && r.To < len(commits) {
		commits = commits[:r.To]
	}
	return commits[min(max(r.From-1, 0), len(commits)):], nil
}

// Last implements [es.Finder].
func (s *EventStore) Last(ctx context.Context, id es.AggregateID) (es.Commit, error) {
	commits, err := s.commits(ctx, id)
	if err == nil && len(commits) == 0 {
		err = es.ErrNotFound
	}
	if err != nil {
		return es.Commit{}, &es.Error{Op: "find last", Aggregate: id, Err: err}
	}
	return copyCommit(commits[len(commits)-1]), nil
}

// Find implements [es.Finder].
func (s *EventStore) Find(ctx context.Context, id es.AggregateID, version int) (es.Commit, error) {
	commits, err := s.commits(ctx, id)
	switch {
	case err != nil:
	case version < 1:
		err = es.Invalid("version %d is below 1", version)
	case version > len(commits):
		err = es.ErrNotFound
	}
	if err != nil {
		return es.Commit{}, &es.Error{Op: "find", Aggregate: id, Version: version, Err: err}
	}
	return copyCommit(commits[version-1]), nil
}

// FindRequest implements [es.Finder].
func (s *EventStore) FindRequest(ctx context.Context, id es.AggregateID, requestID string) (es.Commit, error) {
	commits, err := s.commits(ctx, id)
	if err == nil {
		for i := range commits {
			if commits[i].RequestID == requestID {
				return copyCommit(commits[i]), nil
			}
		}
		err = es.ErrNotFound
	}
	return es.Commit{}, &es.Error{Op: "find request", Aggregate: id, RequestID: requestID, Err: err}
}

// Scan implements [es.Scanner]. It yields what was stored when the loop began.
func (s *EventStore) Scan(ctx context.Context, t es.AggregateType, after string) iter.Seq2[es.AggregateID, error] {
	where := es.Error{Op: "scan", Aggregate: es.AggregateID{Type: t, ID: after}}
	return sequence(ctx, where, same[es.AggregateID], func() ([]es.AggregateID, error) {
		if err := checkType(ctx, t); err != nil {
			return nil, err
		}
		if !utf8.ValidString(after) {
			return nil, es.Invalid("cursor %q is not valid UTF-8", after)
		}
		return s.ids(t, after), nil
	})
}

func checkType(ctx context.Context, t es.AggregateType) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.Validate()
}

func same[T any](v T) T { return v }

// ids is the ids of a type after the given one, in order.
func (s *EventStore) ids(t es.AggregateType, after string) []es.AggregateID {
	var ids []es.AggregateID
	s.mu.RLock()
	for id, st := range s.streams[keyOf(t)] {
		if compareUTF16(id, after) > 0 {
			ids = append(ids, es.AggregateID{Type: t, Tenant: st.tenant, ID: id})
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(ids, func(a, b es.AggregateID) int { return compareUTF16(a.ID, b.ID) })
	return ids
}

// compareUTF16 compares by UTF-16 code units, as the id index in Redis is ordered.
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}
