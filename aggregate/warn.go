package aggregate

import (
	"context"
	"sync"

	"github.com/headwater-go/headwater/es"
)

// What a repository warns of.
const (
	unusable = "snapshot cannot be used; replaying"
	unsaved  = "snapshot was not saved"
)

// maxWarnings bounds what is remembered of warnings.
const maxWarnings = 1000

// warnings remembers what was said of which aggregate: a snapshot that nothing mends
// would be heard of at every command.
type warnings struct {
	mu   sync.Mutex
	said map[warning]bool
}

type warning struct {
	aggregate es.AggregateID
	what      string
}

// first reports whether w is new.
func (s *warnings) first(w warning) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said[w] {
		return false
	}
	if s.said == nil || len(s.said) >= maxWarnings {
		s.said = map[warning]bool{}
	}
	s.said[w] = true
	return true
}

// forget lets everything about an aggregate be said again.
func (s *warnings) forget(id es.AggregateID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.said, warning{id, unusable})
	delete(s.said, warning{id, unsaved})
	delete(s.said, warning{id, unpublished})
}

func (r *Repository[S]) warn(ctx context.Context, what string, m *es.Meta, reason error) {
	if r.warned.first(warning{m.Aggregate, what}) {
		r.Logger.WarnContext(ctx, what, "aggregate", m.Aggregate, "version", m.Version, "reason", reason)
	}
}
