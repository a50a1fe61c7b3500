package redisstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

// work handles entries until the lanes are closed, or ctx ends while it may not. handling
// is the handlers' context.
func (s *subscription) work(ctx, handling context.Context) {
	for {
		n, e := s.lanes.take()
		if n == nil || s.Valve.Wait(ctx) != nil {
			return
		}
		if d := e.topic.process(handling, e); d > 0 {
			s.lanes.park(n, d)
		} else {
			s.lanes.done(n)
		}
	}
}

// process does with an entry what is to be done now. It returns how long to wait
// before it is tried again; 0 = it is out of the lanes.
func (t *topic) process(ctx context.Context, e *entry) time.Duration {
	if e.bad != nil {
		return t.bury(ctx, e, e.reason, e.bad)
	}
	if e.recovered && e.deliveries > t.MaxDeliveries/2 {
		// It may be what its consumers died of: one at a time, so that nothing else that
		// was in hand as well is taken for it.
		if !t.suspect.TryLock() {
			return t.delay(1, nil)
		}
		defer t.suspect.Unlock()
	}
	if t.tenure.lapsed(e.lapses) {
		if d, proceed := t.reassure(ctx, e); !proceed {
			return d
		}
	}
	if e.recovered && !e.raised {
		if d, proceed := t.raise(ctx, e); !proceed {
			return d
		}
	}
	err := t.call(ctx, e)
	tried := e.failures + 1
	e.failed = es.FailuresOf(err, e.failed)
	d := t.after(ctx, e, err)
	if d > 0 && e.bad == nil && t.Observer != nil {
		of := e.delivery()
		of.Attempt = tried
		tell(ctx, t.subscription, es.Retried{Delivery: of, After: d, Err: err})
	}
	return d
}

// after does with an entry what its handler's answer asks for.
func (t *topic) after(ctx context.Context, e *entry, err error) time.Duration {
	switch {
	case err == nil:
		t.done(ctx, e)
		return 0
	case ctx.Err() != nil:
		return 0 // the grace is over; it is given back
	case es.IsPermanent(err):
		return t.bury(ctx, e, recovery.Permanent, err)
	case errors.Is(err, es.ErrUnavailable), errors.Is(err, es.ErrUncertain):
		return t.delay(1, err) // no fault of the message
	}
	return t.failed(ctx, e, err)
}

// done leaves an entry to be acknowledged, unless the grace is over and there is no room.
func (t *topic) done(ctx context.Context, e *entry) {
	select {
	case t.handled <- e:
		return
	default:
	}
	select {
	case t.handled <- e:
	case <-ctx.Done():
	}
}

// call calls the handler and tells how it went.
func (t *topic) call(ctx context.Context, e *entry) error {
	d := e.delivery()
	if t.Observer == nil {
		return t.guarded(es.WithDelivery(ctx, d), e.msg)
	}
	began := time.Now()
	err := t.guarded(es.WithDelivery(ctx, d), e.msg)
	took := time.Since(began)
	if err == nil {
		tell(ctx, t.subscription, es.Handled{Delivery: d, Took: took})
	} else {
		tell(ctx, t.subscription, es.Failed{Delivery: d, Took: took, Err: err})
	}
	return err
}

// guarded calls the handler; a panic is an error with its stack.
func (t *topic) guarded(ctx context.Context, msg any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", es.ErrPanic, p, debug.Stack())
		}
	}()
	return t.handle(ctx, msg)
}

// reassure asks whether an entry that others may have taken meanwhile is still this
// process's own, before it is handled.
func (t *topic) reassure(ctx context.Context, e *entry) (retry time.Duration, proceed bool) {
	lapses := t.tenure.lapses.Load()
	owned, err := t.group.Owns(ctx, e.stream, e.id)
	switch {
	case err != nil:
		return t.delay(1, err), false
	case !owned:
		t.drop(e)
		return 0, false
	}
	e.lapses = lapses
	return 0, true
}

// raise counts the delivery of an entry that this process did not read, before it is
// handled: so only the culprit of a crash goes on counting.
func (t *topic) raise(ctx context.Context, e *entry) (retry time.Duration, proceed bool) {
	deliveries, err := t.group.Raise(ctx, e.stream, e.id)
	switch {
	case errors.Is(err, recovery.ErrNotOwner):
		t.drop(e)
		return 0, false
	case err != nil:
		return t.delay(1, err), false
	}
	e.raised = true
	t.hold(e)
	if e.failures >= t.MaxDeliveries { // its owner died between the last try and the letter
		return t.bury(ctx, e, recovery.Limit, fmt.Errorf("%s (whoever tried it last died before the letter was written)", e.cause)), false
	}
	if deliveries > 3*t.MaxDeliveries {
		return t.bury(ctx, e, recovery.Crashed, es.Corrupt("delivered %d times and never finished", deliveries)), false
	}
	return 0, true
}

// failed counts a failure where every owner of the entry sees it.
func (t *topic) failed(ctx context.Context, e *entry, cause error) time.Duration {
	count, _, err := t.group.Fail(ctx, e.stream, e.id, cause)
	switch {
	case errors.Is(err, recovery.ErrNotOwner):
		t.drop(e)
		return 0
	case err != nil:
		e.failures++ // counted there or not, it was called
		return t.delay(1, err)
	}
	e.failures = max(count, e.failures+1)
	if count >= t.MaxDeliveries {
		return t.bury(ctx, e, recovery.Limit, cause)
	}
	return t.delay(count, cause)
}

// bury makes an entry a dead letter. Where that cannot be written the entry stays, and
// is not handled again.
func (t *topic) bury(ctx context.Context, e *entry, reason recovery.Reason, cause error) time.Duration {
	args := []any{"topic", t.name, "group", t.Group, "id", e.id, "reason", string(reason)}
	if reason != recovery.Undecodable { // that error may quote the message; the letter has it
		args = append(args, "error", cause)
	}
	t.log.Warn(ctx, "message cannot be handled", args...)
	if t.NoDeadLetters {
		t.keepPending(e) // so that nobody takes it for lost
		t.tellOwner(ctx, e, cause)
		return 0
	}
	letter := recovery.Letter{Reason: reason, Error: cause.Error(), Attempts: max(e.failures, 1), Aggregate: e.aggregate}
	err := t.group.Bury(ctx, e.stream, e.id, letter, e.failed...)
	if err != nil && !errors.Is(err, recovery.ErrNotOwner) {
		t.log.Warn(ctx, "dead letter was not written; the message stays pending", "topic", t.name, "group", t.Group, "id", e.id, "error", err)
		e.bad, e.reason = cause, reason
		return t.delay(3, err)
	}
	if err == nil {
		t.tellBuried(ctx, e, reason, cause)
		t.tellOwner(ctx, e, cause)
	}
	if err == nil && t.DeleteAcked {
		if _, err := t.group.Ack(ctx, e.stream, []string{e.id}); err != nil {
			t.log.Warn(ctx, "a buried message was not deleted from its stream", "topic", t.name, "group", t.Group, "id", e.id, "error", err)
		}
	}
	t.drop(e)
	return 0
}

func reasonOf(err error) recovery.Reason {
	if errors.Is(err, es.ErrUnknownType) {
		return recovery.UnknownType
	}
	return recovery.Undecodable
}

// delay is the pause after the n-th failure: what the error asks for, else one that
// doubles, spread over its upper half.
func (t *topic) delay(n int, err error) time.Duration {
	if d, ok := es.RetryDelay(err); ok && d > 0 {
		return d
	}
	d := t.MaxBackoff
	if n < 20 {
		d = min(t.Backoff<<(n-1), t.MaxBackoff)
	}
	return d/2 + rand.N(d/2+1)
}
