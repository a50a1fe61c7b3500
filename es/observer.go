package es

import (
	"context"
	"fmt"
	"time"
)

// Observer is told what becomes of messages, by many goroutines at once and in the middle
// of the work: it must not block. A panic of it is logged and harms nothing. No
// observation holds a payload; the text of an error may quote one.
type Observer interface {
	Observe(ctx context.Context, o Observation)
}

// Observation is one of the types below that say so; more may come.
type Observation interface{ observation() }

// Published says that messages were added to a topic, or, with Err, that they were not all
// added, as far as is known. It is an observation.
type Published struct {
	Topic    string
	Messages int
	Took     time.Duration
	Err      error
}

// Subscribed says that a consumer begins with a topic, whose groups may not be made yet. It
// is an observation.
type Subscribed struct{ Topic, Group, Consumer string }

// Unsubscribed says that a consumer has ended with a topic. It is an observation.
type Unsubscribed struct{ Topic, Group, Consumer string }

// Received says that this process has taken a message in hand. It is an observation.
type Received struct{ Delivery }

// Undecodable says that a received message cannot be handed to a handler. It is an
// observation.
type Undecodable struct {
	Delivery
	Reason UndecodableReason
	Err    error
}

// UndecodableReason is why a message cannot be handed to a handler.
type UndecodableReason string

// Why a message is undecodable. The first two are Wow's.
const (
	MissingMessageField   UndecodableReason = "missing_message_field"
	DeserializationFailed UndecodableReason = "deserialization_failed"
	UnknownMessageType    UndecodableReason = "unknown_type"
)

// Handled says that a handler has returned nil. It is an observation.
type Handled struct {
	Delivery
	Took time.Duration
}

// Failed says that a handler has returned an error, or has panicked. [Retried] or
// [DeadLettered] follows, unless the subscription ends or another consumer has the message
// by then. It is an observation.
type Failed struct {
	Delivery
	Took time.Duration
	Err  error
}

// Retried says that a message that has failed will be handled again, After that time. It
// is an observation.
type Retried struct {
	Delivery
	After time.Duration
	Err   error
}

// DeadLettered says that a message was made a dead letter, for one of the reasons in
// package recovery. It is an observation.
type DeadLettered struct {
	Delivery
	Reason string
	Err    error
}

// Replayed says that a dead letter was given to its group again. It is an observation.
type Replayed struct{ Topic, Group, Letter string }

// LettersExpired says that dead letters were removed that were too old or too many. It is
// an observation.
type LettersExpired struct {
	Topic           string
	TooOld, TooMany int64
}

// Claimed says that this process has taken over messages of other consumers, and has Found
// some of its own that a lost reply had named. It is an observation.
type Claimed struct {
	Topic, Group   string
	Claimed, Found int
}

// LeaseLost says that a consumer renewed its lease only after it had run out: others may
// have taken over its messages. It is an observation.
type LeaseLost struct{ Topic, Group, Consumer string }

// TakenOver says that messages which this process has handled were another consumer's by
// then, and may be handled again. It is an observation.
type TakenOver struct {
	Topic, Group string
	IDs          []string
}

// Missing says that pending messages are no longer in the stream: nobody can handle them.
// It is an observation.
type Missing struct {
	Topic, Group string
	IDs          []string
}

// Unavailable says that a subscription cannot do its work on a topic now; it tries on. It
// comes once, for the first Cause, until [Healed] or [Unsubscribed]. It is an observation.
type Unavailable struct {
	Topic, Group, Consumer string
	Cause                  error
}

// Healed says that a subscription works again, after it had been [Unavailable]. It is an
// observation.
type Healed struct {
	Topic, Group, Consumer string
	After                  time.Duration
}

// GroupRestored says that a group was gone and was made anew, From the place given. It is
// an observation.
type GroupRestored struct {
	Topic, Group string
	From         Start
}

// Trimmed says that entries were removed from a topic's stream; Lost are those that some
// group had not acknowledged, and HeldBack the groups that others are kept for. It is an
// observation.
type Trimmed struct {
	Topic         string
	Removed, Lost int64
	HeldBack      []string
}

func (Published) observation()      {}
func (Subscribed) observation()     {}
func (Unsubscribed) observation()   {}
func (Received) observation()       {}
func (Undecodable) observation()    {}
func (Handled) observation()        {}
func (Failed) observation()         {}
func (Retried) observation()        {}
func (DeadLettered) observation()   {}
func (Replayed) observation()       {}
func (LettersExpired) observation() {}
func (Claimed) observation()        {}
func (LeaseLost) observation()      {}
func (TakenOver) observation()      {}
func (Missing) observation()        {}
func (Unavailable) observation()    {}
func (Healed) observation()         {}
func (GroupRestored) observation()  {}
func (Trimmed) observation()        {}

// Tell tells an observer, if there is one. A panic of it is returned as an [ErrPanic]. It
// allocates nothing where there is none.
func Tell[O Observation](ctx context.Context, to Observer, o O) (err error) {
	if to == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: observer of %T: %v", ErrPanic, o, p)
		}
	}()
	to.Observe(ctx, o)
	return nil
}

// Observers tells several observers, in this order; the panic of one keeps nothing from
// the others. Those that are nil are left out.
func Observers(os ...Observer) Observer {
	var all observers
	for _, o := range os {
		if o != nil {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

type observers []Observer

func (os observers) Observe(ctx context.Context, o Observation) {
	var failed error
	for _, to := range os {
		if err := Tell(ctx, to, o); err != nil {
			failed = err
		}
	}
	if failed != nil {
		panic(failed) // for whoever tells, who logs it
	}
}
