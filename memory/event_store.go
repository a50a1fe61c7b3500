package memory

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/headwater-go/headwater/es"
)

// EventStore is an [es.EventStore], [es.Scanner] and [es.Outbox]. It hands out the very
// bodies that it was given, to every reader the same: whoever changes a map or slice of
// one changes what is stored, unlike with a store that writes them. A copy of any type
// would take a codec, and as long as the rest of a test.
type EventStore struct {
	mu sync.RWMutex
	// streams holds the one stream of each id of a type: an id belongs to one tenant.
	streams map[typeKey]map[string]*stream
}

// stream is the commits of one aggregate.
type stream struct {
	tenant  string
	commits []es.Commit // version 1 first
	digests [][sha256.Size]byte
	// requests finds the version of a request id.
	requests map[string]int
	// note is the first unpublished version, 0 = none.
	note int
}

// NewEventStore is an empty store.
func NewEventStore() *EventStore {
	return &EventStore{streams: map[typeKey]map[string]*stream{}}
}

// stream is the stream of an aggregate, nil where there is none. The caller holds mu.
func (s *EventStore) stream(id es.AggregateID) *stream {
	if st := s.streams[keyOf(id.Type)][id.ID]; st != nil && st.tenant == id.Tenant {
		return st
	}
	return nil
}

// Append implements [es.Appender]. Commits are the very same where everything that
// would be written of them is, the bodies compared by their JSON.
func (s *EventStore) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (es.Appended, error) {
	if len(commits) == 0 {
		return es.Appended{}, &es.Error{Op: "append", Err: es.Invalid("no commits")}
	}
	if err := ctx.Err(); err != nil {
		return es.Appended{}, appendError(&commits[0], err)
	}
	copies, digests, err := prepare(commits)
	if err != nil {
		return es.Appended{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := copies[0]
	st := s.stream(first.Aggregate)
	if st.holds(first.Version, digests) {
		return es.Appended{Same: true, Publish: o.Note && st.note == first.Version}, nil
	}
	if err := s.refuse(st, copies); err != nil {
		return es.Appended{}, err
	}
	if st == nil {
		st = s.create(first.Aggregate)
	}
	return es.Appended{Publish: st.add(o, copies, digests)}, nil
}

// prepare checks and copies the commits of one call.
func prepare(commits []es.Commit) (copies []es.Commit, digests [][sha256.Size]byte, err error) {
	ids, requests := map[string]bool{}, map[string]bool{}
	for i := range commits {
		c := copyCommit(commits[i])
		err := c.Validate()
		switch {
		case err != nil:
		case c.Aggregate != commits[0].Aggregate:
			err = es.Invalid("one call appends to one aggregate, and %s is another", c.Aggregate)
		case c.Version != commits[0].Version+i:
			err = es.Invalid("version %d does not follow %d", c.Version, commits[0].Version+i-1)
		case ids[c.ID]:
			err = es.Invalid("two commits have the id %q", c.ID)
		case requests[c.RequestID]:
			err = es.Invalid("two commits have the request id %q", c.RequestID)
		}
		if err != nil {
			return nil, nil, appendError(&c, err)
		}
		ids[c.ID], requests[c.RequestID] = true, true
		if len(c.Header) == 0 {
			c.Header = nil
		}
		data, err := encode(c)
		if err != nil {
			return nil, nil, appendError(&c, err)
		}
		copies, digests = append(copies, c), append(digests, sha256.Sum256(data))
	}
	return copies, digests, nil
}

// refuse is the answer to commits that cannot be appended, in the order that
// [es.Appender] promises. Nothing is stored yet. The caller holds mu.
func (s *EventStore) refuse(st *stream, commits []es.Commit) error {
	first, version := &commits[0], 0
	if st != nil {
		for i := range commits {
			if v, known := st.requests[commits[i].RequestID]; known {
				return appendError(&commits[i], fmt.Errorf("%w: it is stored at version %d", es.ErrDuplicateRequest, v))
			}
		}
		version = len(st.commits)
	}
	if first.Version == 1 && st == nil && s.streams[keyOf(first.Aggregate.Type)][first.Aggregate.ID] != nil {
		return appendError(first, fmt.Errorf("%w: the id belongs to another tenant", es.ErrDuplicateAggregate))
	}
	if first.Version != version+1 {
		return appendError(first, fmt.Errorf("%w: the aggregate is at version %d", es.ErrVersionConflict, version))
	}
	return nil
}

// create makes the stream of an aggregate. The caller holds mu.
func (s *EventStore) create(id es.AggregateID) *stream {
	key := keyOf(id.Type)
	if s.streams[key] == nil {
		s.streams[key] = map[string]*stream{}
	}
	st := &stream{tenant: id.Tenant, requests: map[string]int{}}
	s.streams[key][id.ID] = st
	return st
}

// holds reports whether exactly these commits are stored from version on.
func (st *stream) holds(version int, digests [][sha256.Size]byte) bool {
	if st == nil || version-1+len(digests) > len(st.digests) {
		return false
	}
	for i, d := range digests {
		if st.digests[version-1+i] != d {
			return false
		}
	}
	return true
}

// add stores the commits and reports whether it is the caller who publishes them.
func (st *stream) add(o es.AppendOptions, commits []es.Commit, digests [][sha256.Size]byte) bool {
	st.commits, st.digests = append(st.commits, commits...), append(st.digests, digests...)
	for i := range commits {
		st.requests[commits[i].RequestID] = commits[i].Version
	}
	if !o.Note || st.note != 0 {
		return false
	}
	st.note = commits[0].Version
	return true
}

func appendError(c *es.Commit, err error) error {
	return &es.Error{Op: "append", Aggregate: c.Aggregate, Version: c.Version, RequestID: c.RequestID, Err: err}
}
