package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/headwater-go/headwater/es"
)

// SnapshotStore is an [es.SnapshotStore]. It keeps snapshots as JSON, so that a state
// comes back as a copy, without its unexported fields, as it would from Redis.
type SnapshotStore[S any] struct {
	mu     sync.RWMutex
	stored map[aggregateKey]storedSnapshot
}

type storedSnapshot struct {
	version int
	data    []byte
}

// NewSnapshotStore is an empty store.
func NewSnapshotStore[S any]() *SnapshotStore[S] {
	return &SnapshotStore[S]{stored: map[aggregateKey]storedSnapshot{}}
}

// Load implements [es.SnapshotStore].
func (s *SnapshotStore[S]) Load(ctx context.Context, id es.AggregateID) (es.Snapshot[S], error) {
	stored, err := s.find(ctx, id)
	if err == nil && stored.data == nil {
		err = es.ErrNotFound
	}
	var snapshot es.Snapshot[S]
	if err == nil {
		if bad := json.Unmarshal(stored.data, &snapshot); bad != nil {
			err = &es.UnreadableSnapshot{Raw: bytes.Clone(stored.data), Err: bad}
		}
	}
	if err != nil {
		return es.Snapshot[S]{}, &es.Error{Op: "load snapshot", Aggregate: id, Err: err}
	}
	snapshot.Stored = bytes.Clone(stored.data)
	return snapshot, nil
}

// Version implements [es.SnapshotStore].
func (s *SnapshotStore[S]) Version(ctx context.Context, id es.AggregateID) (int, error) {
	stored, err := s.find(ctx, id)
	if err != nil {
		return 0, &es.Error{Op: "read snapshot version", Aggregate: id, Err: err}
	}
	return stored.version, nil
}

func (s *SnapshotStore[S]) find(ctx context.Context, id es.AggregateID) (storedSnapshot, error) {
	if err := ctx.Err(); err != nil {
		return storedSnapshot{}, err
	}
	if err := id.Validate(); err != nil {
		return storedSnapshot{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.stored[aggregateKeyOf(id)], nil
}

// Save implements [es.SnapshotStore]. Nothing that it stored is ever an
// [es.ErrCorrupt] to it: it knows the version without reading the bytes.
func (s *SnapshotStore[S]) Save(ctx context.Context, snapshot es.Snapshot[S]) error {
	candidate, err := encodeSnapshot(ctx, snapshot)
	if err != nil {
		return snapshotError("save snapshot", snapshot.Meta, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := aggregateKeyOf(snapshot.Aggregate)
	if s.stored[key].version <= candidate.version {
		s.stored[key] = candidate
	}
	return nil
}

// Replace implements [es.SnapshotStore].
func (s *SnapshotStore[S]) Replace(ctx context.Context, old []byte, snapshot es.Snapshot[S]) (bool, error) {
	candidate, err := encodeSnapshot(ctx, snapshot)
	if err != nil {
		return false, snapshotError("replace snapshot", snapshot.Meta, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := aggregateKeyOf(snapshot.Aggregate)
	stored, ok := s.stored[key]
	if !ok || !bytes.Equal(stored.data, old) {
		return false, nil
	}
	s.stored[key] = candidate
	return true, nil
}

func encodeSnapshot[S any](ctx context.Context, s es.Snapshot[S]) (storedSnapshot, error) {
	if err := ctx.Err(); err != nil {
		return storedSnapshot{}, err
	}
	if err := s.Aggregate.Validate(); err != nil {
		return storedSnapshot{}, err
	}
	if s.Version < 0 || s.Version > es.MaxVersion {
		return storedSnapshot{}, es.Invalid("version %d is not between 0 and %d", s.Version, es.MaxVersion)
	}
	if s.SnapshotTime.IsZero() {
		s.SnapshotTime = time.Now()
	}
	s.Stored = nil
	s.FirstEventTime, s.EventTime, s.SnapshotTime = stamp(s.FirstEventTime), stamp(s.EventTime), stamp(s.SnapshotTime)
	data, err := encode(s)
	return storedSnapshot{version: s.Version, data: data}, err
}

func snapshotError(op string, m es.Meta, err error) error {
	return &es.Error{Op: op, Aggregate: m.Aggregate, Version: m.Version, Err: err}
}
