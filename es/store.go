package es

import (
	"context"
	"iter"
	"time"
)

// Versions is an inclusive range of versions; the zero value is all of them.
type Versions struct {
	// From is the first version. Defaults to 1.
	From int
	// To is the last version. Defaults to the newest.
	To int
}

// AppendOptions are the knobs of [Appender.Append].
type AppendOptions struct {
	// Note leaves a note in the outbox, in the same atomic step, for the caller to
	// publish the commits and then to call [Outbox.Published]. Set it where there is a bus.
	Note bool
	// State is the state event of a single commit, for a store that publishes by itself.
	State *StateEvent
}

// Appended says what the caller of [Appender.Append] does next.
type Appended struct {
	// Publish: with a note, it is the caller who publishes. False where an older
	// version is unpublished (its publisher goes on with these), and without a note.
	Publish bool
	// Same: the very same commits were stored already, by an earlier call whose reply was lost.
	Same bool
	// Published: the store has published them itself, and left no note.
	Published bool
}

// Appender appends commits of one aggregate, with consecutive versions, all or nothing.
//
// It answers in this order: the very same commits stored at these versions = success;
// [ErrDuplicateRequest]; then [ErrCorrupt], [ErrDuplicateAggregate], [ErrVersionConflict].
// After an [ErrUncertain] the same call again is safe.
type Appender interface {
	Append(ctx context.Context, o AppendOptions, commits ...Commit) (Appended, error)
}

// Loader yields the commits of an aggregate in version order, page by page. An unknown
// aggregate has none; a missing version is an [ErrCorrupt]. The first error ends the sequence.
type Loader interface {
	Load(ctx context.Context, id AggregateID, r Versions) iter.Seq2[Commit, error]
}

// Finder finds single commits. What is not there is an [ErrNotFound].
type Finder interface {
	Last(ctx context.Context, id AggregateID) (Commit, error)
	Find(ctx context.Context, id AggregateID, version int) (Commit, error)
	// FindRequest finds the commit of a request id. It costs one look where there is
	// none, else it reads backwards from the newest commit.
	FindRequest(ctx context.Context, id AggregateID, requestID string) (Commit, error)
}

// EventStore is what the repository needs.
type EventStore interface {
	Appender
	Loader
	Finder
}

// Scanner yields the ids of all aggregates of a type, in the order of their UTF-16
// code units, beginning after the id given; "" = from the first.
type Scanner interface {
	Scan(ctx context.Context, t AggregateType, after string) iter.Seq2[AggregateID, error]
}

// Note says that commits of an aggregate, from Version on, are not known to be published.
type Note struct {
	Aggregate AggregateID
	Version   int
}

// Move is what one call of [Outbox].Published says.
type Move struct {
	Aggregate AggregateID
	// From is where the note must stand, Through the last version that was published.
	From, Through int
}

// Outbox is the notes that [AppendOptions].Note leaves.
type Outbox interface {
	// Unpublished yields all notes of a type.
	Unpublished(ctx context.Context, t AggregateType) iter.Seq2[Note, error]
	// Published moves the aggregate's note from version from to the one after through,
	// or removes it where the store holds nothing newer, and returns where the note
	// stands then: 0 = nowhere. A note that does not stand at from is left as it is.
	Published(ctx context.Context, id AggregateID, from, through int) (next int, err error)
	// PublishedAll does so for each of many, in one round trip. Where one failed, its next
	// is -1 and the error is among those returned; the others are done.
	PublishedAll(ctx context.Context, moves ...Move) (next []int, err error)
}

// Lease is what one process at a time holds.
type Lease interface {
	// Hold takes the lease, or takes it on, for d from now on by the clock of whoever keeps
	// it. It is false where another process has it.
	Hold(ctx context.Context, d time.Duration) (bool, error)
}

// SnapshotStore keeps the newest snapshot of each aggregate.
type SnapshotStore[S any] interface {
	// Load returns [ErrNotFound] where there is none, and an [UnreadableSnapshot]
	// for one that cannot be used: other bytes, another shape, another aggregate.
	Load(ctx context.Context, id AggregateID) (Snapshot[S], error)
	// Save stores s unless a newer one is stored, which is no error. Over bytes that
	// cannot be read it is an [ErrCorrupt].
	Save(ctx context.Context, s Snapshot[S]) error
	// Version is that of the stored snapshot, 0 where there is none.
	Version(ctx context.Context, id AggregateID) (int, error)
	// Replace stores s where exactly the bytes old are stored, and says whether it did.
	Replace(ctx context.Context, old []byte, s Snapshot[S]) (bool, error)
}

// Prepared is a reserved value.
type Prepared[V any] struct {
	Value V
	// Until is when the reservation ends, by the server's clock; zero = never.
	Until time.Time
}

// PrepareKey reserves unique keys under one name, such as user names: at any time one
// caller at most holds a key. Reservations end by the store's own clock: a key is
// expired from the very millisecond of its end on. A ttl of 0 = until rolled back; a
// negative one is an [ErrInvalid]. Values are compared by their encoded bytes.
type PrepareKey[V any] interface {
	// Prepare reserves a free key; false where it is held.
	Prepare(ctx context.Context, key string, value V, ttl time.Duration) (bool, error)
	// Reprepare gives a held key another value and end; false where it is free.
	Reprepare(ctx context.Context, key string, value V, ttl time.Duration) (bool, error)
	// ReprepareFrom does so only where the key is held with the value old.
	ReprepareFrom(ctx context.Context, key string, old, value V, ttl time.Duration) (bool, error)
	// Rollback frees a held key; false where it is free.
	Rollback(ctx context.Context, key string) (bool, error)
	// RollbackFrom does so only where the key is held with the value old.
	RollbackFrom(ctx context.Context, key string, old V) (bool, error)
	// Get is the value of a held key; [ErrNotFound] where it is free.
	Get(ctx context.Context, key string) (V, error)
	// GetValue also returns reservations that have ended and are not yet swept.
	GetValue(ctx context.Context, key string) (Prepared[V], error)
}
