package es

import (
	"errors"
	"fmt"
	"time"
)

// What went wrong. Compare with [errors.Is]; an [Error] around it says where.

// Refused before anything is written.
var (
	// ErrInvalid: the input cannot be stored; the text names the field.
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge: a message, id or batch is over its limit.
	ErrTooLarge = errors.New("too large")
	// ErrUnknownType: a stored name stands for no Go type that the codec knows.
	ErrUnknownType = errors.New("unknown type")
)

// Answers of a store.
var (
	// ErrNotFound: there is no such aggregate, version, request, snapshot or key.
	ErrNotFound = errors.New("not found")
	// ErrVersionConflict: the aggregate is at another version than the caller thought.
	ErrVersionConflict = errors.New("version conflict")
	// ErrDuplicateRequest: a commit of the same request id is stored.
	ErrDuplicateRequest = errors.New("duplicate request")
	// ErrDuplicateAggregate: the id belongs to another tenant, or was purged and must not return.
	ErrDuplicateAggregate = errors.New("duplicate aggregate")
	// ErrCorrupt: what is stored contradicts itself or cannot be read. Nothing was written.
	ErrCorrupt = errors.New("corrupt")
	// ErrWrongFormat: another codec wrote it. It is an [ErrCorrupt] to nobody: configure the codec.
	ErrWrongFormat = errors.New("written by another codec")
	// ErrLegacyLayout: the database holds keys of an older layout; run "headwater migrate audit".
	ErrLegacyLayout = errors.New("legacy layout")
	// ErrStartRequired: a new group on a stream with entries must say whether it begins
	// at [FromBeginning] or at [FromNow].
	ErrStartRequired = errors.New("subscription must say where to start")
	// ErrEviction: the server is set to evict keys that must not be lost.
	ErrEviction = errors.New("server may evict events")
)

// Faults of the server or of the way to it.
var (
	// ErrUnavailable: the server refuses writes for now (loading, read-only, disk
	// trouble, replicas missing, busy, out of memory). Nothing was written.
	ErrUnavailable = errors.New("server unavailable")
	// ErrOutOfMemory is an [ErrUnavailable] whose cause is maxmemory.
	ErrOutOfMemory = fmt.Errorf("%w: out of memory", ErrUnavailable)
	// ErrUncertain: the reply was lost, so the write may have happened. The same append
	// or save again is safe: it succeeds where the first one did. A reservation is
	// looked up instead, with [PrepareKey].GetValue.
	ErrUncertain = errors.New("outcome unknown")
	// ErrUnreplicated is an [ErrUncertain]: it is stored, but fewer replicas than asked
	// for have confirmed it, so that a failover may lose it.
	ErrUnreplicated = fmt.Errorf("%w: too few replicas confirmed it", ErrUncertain)
)

// Answers of an aggregate to a command.
var (
	// ErrRefused is the kind of all errors below and of those that a decider returns:
	// the command was understood and not carried out. A repeat gets the same answer
	// for as long as the aggregate stays as it is.
	ErrRefused = errors.New("refused")
	// ErrExpectedVersion: the aggregate is not at the version that the command expects.
	ErrExpectedVersion = errors.New("expected version differs")
	// ErrDeleted: the aggregate is deleted.
	ErrDeleted = errors.New("aggregate is deleted")
	// ErrNotDeleted: only a deleted aggregate can be recovered.
	ErrNotDeleted = errors.New("aggregate is not deleted")
	// ErrWrongOwner: the command names another owner.
	ErrWrongOwner = errors.New("aggregate belongs to another owner")
	// ErrWrongSpace: the command names another space.
	ErrWrongSpace = errors.New("aggregate belongs to another space")
	// ErrRequestReused: another command, of another name or body, was carried out under
	// the same request id.
	ErrRequestReused = errors.New("request id was used for another command")
	// ErrPanic: a decider panicked. It is a fault, not a refusal.
	ErrPanic = errors.New("panic")
)

// Error says where something went wrong: which operation, on which aggregate, at
// which version, for which request. Fields that mean nothing there are zero.
type Error struct {
	Op        string
	Aggregate AggregateID
	Version   int
	RequestID string
	Err       error
}

// Error is "append sales.order/o-1@(0) version 3: version conflict": one line, but for an
// [ErrPanic], which carries its stack.
func (e *Error) Error() string {
	s := e.Op
	if e.Aggregate != (AggregateID{}) {
		s += " " + e.Aggregate.String()
	}
	if e.Version != 0 {
		s += fmt.Sprintf(" version %d", e.Version)
	}
	if e.RequestID != "" {
		s += " request " + printable(e.RequestID)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives [errors.Is] and [errors.As] the cause.
func (e *Error) Unwrap() error { return e.Err }

// Invalid is an [ErrInvalid] with a text that names the field.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// Corrupt is an [ErrCorrupt] with a text that says what contradicts what.
func Corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// Refuse makes err the aggregate's answer: it stays what it is, and becomes an
// [ErrRefused]. The repository does so with every error of a decider. nil stays nil.
func Refuse(err error) error {
	if err == nil || errors.Is(err, ErrRefused) {
		return err
	}
	return &marked{err: err, mark: ErrRefused}
}

// errPermanent marks an error that no retry will mend.
var errPermanent = errors.New("permanent")

// Permanent tells whoever called a handler not to try again. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &marked{err: err, mark: errPermanent}
}

// IsPermanent reports whether [Permanent] made err.
func IsPermanent(err error) bool { return errors.Is(err, errPermanent) }

// marked adds a kind to an error without adding to its text.
type marked struct{ err, mark error }

func (m *marked) Error() string   { return m.err.Error() }
func (m *marked) Unwrap() []error { return []error{m.err, m.mark} }

// RetryAfter tells whoever called a handler to try again, no sooner than after d.
// nil stays nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &delayed{err: err, after: d}
}

// RetryDelay is the delay that [RetryAfter] asked for.
func RetryDelay(err error) (time.Duration, bool) {
	var d *delayed
	if errors.As(err, &d) {
		return d.after, true
	}
	return 0, false
}

type delayed struct {
	err   error
	after time.Duration
}

func (d *delayed) Error() string { return d.err.Error() }
func (d *delayed) Unwrap() error { return d.err }

// UnreadableSnapshot is an [ErrCorrupt] that carries the stored bytes, so that the
// snapshot can be replaced by [SnapshotStore.Replace] without racing another writer.
type UnreadableSnapshot struct {
	Raw []byte
	Err error
}

// Error says why it cannot be read.
func (e *UnreadableSnapshot) Error() string { return "unreadable snapshot: " + e.Err.Error() }

// Unwrap gives [errors.Is] the cause and the kind.
func (e *UnreadableSnapshot) Unwrap() []error { return []error{ErrCorrupt, e.Err} }
