package es

import (
	"math"
	"time"
)

// MaxVersion is the highest version there can be: Wow's versions are 32-bit.
const MaxVersion = math.MaxInt32

// DefaultRevision is the revision of an event body that does not name its own.
const DefaultRevision = "0.0.1"

// EventBody is what an event says. Its name is stored, so it never changes, whatever
// becomes of the Go type: "order_placed". A body whose shape has had several revisions
// also has a method EventRevision() string.
type EventBody interface{ EventName() string }

// Events are the bodies that one decision produced, in order. They are stored
// together, as one commit. None means that there is nothing to do.
type Events []EventBody

// Event is one event of a [Commit].
type Event struct {
	// ID identifies the event.
	ID string
	// Name is the stored name.
	Name string
	// Revision is that of the body's shape. Defaults to the body's own, or [DefaultRevision].
	Revision string
	// BodyType is Wow's JVM class name of the body. Defaults to the codec's table.
	BodyType string
	// Body is an [EventBody], or a [Raw] for a type that the reader does not know.
	Body any

	// The rest is not written: [Commit.Derive] fills it from the commit.

	Aggregate AggregateID
	Version   int
	// Sequence counts the events of a commit from 1.
	Sequence int
	// Last says that no event of the commit follows.
	Last bool
	// Time is the commit's.
	Time time.Time
}

// NewEvent is an event with the names that its body gives it.
func NewEvent(id string, body EventBody) Event {
	e := Event{ID: id, Name: body.EventName(), Revision: DefaultRevision, Body: body}
	if r, ok := body.(interface{ EventRevision() string }); ok {
		e.Revision = r.EventRevision()
	}
	return e
}

// Commit is the events that one command produced, stored under one version. Wow calls
// it a domain event stream.
type Commit struct {
	// ID identifies the commit; no other commit has it.
	ID        string
	Aggregate AggregateID
	Header    Header
	OwnerID   string
	SpaceID   string
	// CommandID is the id of the command that produced it.
	CommandID string
	// RequestID is unique within the aggregate, for ever.
	RequestID string
	// Version counts the commits of the aggregate; the first is 1.
	Version int
	Events  []Event
	// CreateTime is when it was made, in milliseconds.
	CreateTime time.Time
}

// Derive fills the fields of the events that follow from the commit. Codecs call it
// after reading, and the repository before it evolves a state.
func (c *Commit) Derive() {
	for i := range c.Events {
		e := &c.Events[i]
		e.Aggregate, e.Version, e.Time = c.Aggregate, c.Version, c.CreateTime
		e.Sequence, e.Last = i+1, i == len(c.Events)-1
	}
}

// Validate reports what keeps the commit from being appended, as an [ErrInvalid].
func (c *Commit) Validate() error {
	if err := c.Aggregate.Validate(); err != nil {
		return err
	}
	if c.Version < 1 || c.Version > MaxVersion {
		return Invalid("version %d is not between 1 and %d", c.Version, MaxVersion)
	}
	if len(c.Events) == 0 {
		return Invalid("commit has no events")
	}
	if err := checkTexts(
		text{"commit id", c.ID, true}, text{"command id", c.CommandID, true}, text{"request id", c.RequestID, true},
		text{"owner", c.OwnerID, false}, text{"space", c.SpaceID, false}); err != nil {
		return err
	}
	for i := range c.Events {
		e := &c.Events[i]
		if e.Body == nil {
			return Invalid("event %d has no body", i+1)
		}
		if err := checkTexts(text{"event id", e.ID, true}, text{"event name", e.Name, true}, text{"event revision", e.Revision, true}); err != nil {
			return err
		}
	}
	return nil
}

// StateEvent is a commit together with the state that it led to.
type StateEvent struct {
	Commit
	FirstOperator  string
	FirstEventTime time.Time
	// State is the state after the commit, or a [Raw] for a reader that gave no type.
	State any
	Tags  Tags
	// Deleted says that the aggregate is deleted after the commit.
	Deleted bool
}

// Tags are an aggregate's resource tags, for attribute-based access control.
type Tags map[string][]string

// Raw is a body or state that was not decoded: the exact bytes as they were stored.
type Raw []byte
