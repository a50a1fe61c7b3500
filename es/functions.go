package es

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// Names of the headers that a commit carries when it is sent again for one function
// alone. Wow calls that compensation.
const (
	HeaderCompensateID        = "compensate.id"
	HeaderCompensateContext   = "compensate.context"
	HeaderCompensateProcessor = "compensate.processor"
	HeaderCompensateFunction  = "compensate.function"
)

// EventFunction is one of several functions that handle the commits of a group. Its
// Context, Processor and Name are stored where it fails, so they never change.
type EventFunction struct {
	Function
	// Handle handles a commit, which it shares with the other functions; what it returns
	// is its acknowledgement (see [Permanent], [RetryAfter]).
	Handle func(ctx context.Context, c Commit) error
}

// Functions handle the commits of one group side by side: each gets every commit, and
// where some fail, only those are called again. A function that has failed too often
// becomes a dead letter of its own, which names it; its replay calls it alone. After a
// crash of the process all functions see the commit again.
type Functions []EventFunction

// Subscribe subscribes the functions to a bus, until ctx is done. It sets s.Functions.
func (fs Functions) Subscribe(ctx context.Context, bus EventSubscriber, s Subscription) error {
	if len(fs) == 0 {
		return &Error{Op: "subscribe", Err: Invalid("group %q has no functions", s.Group)}
	}
	s.Functions = nil
	for i, f := range fs {
		switch {
		case f.Handle == nil || strings.TrimSpace(f.Name) == "":
			return &Error{Op: "subscribe", Err: Invalid("function %d of group %q has no name, or nothing to call", i+1, s.Group)}
		case slices.ContainsFunc(s.Functions, f.same):
			return &Error{Op: "subscribe", Err: Invalid("group %q has two functions %s", s.Group, f.Function)}
		}
		s.Functions = append(s.Functions, f.Function)
	}
	return bus.Subscribe(ctx, s, fs.handle)
}

// handle calls the functions that are to be called.
func (fs Functions) handle(ctx context.Context, c Commit) error {
	d, _ := DeliveryOf(ctx)
	var failures []FunctionFailure
	for _, before := range d.Failed {
		if !slices.ContainsFunc(fs, func(f EventFunction) bool { return f.same(before.Function) }) {
			failures = append(failures, FunctionFailure{before.Function, Permanent(fmt.Errorf("%w: function %s", ErrNotFound, before.Function))})
		}
	}
	for _, f := range fs {
		at := slices.IndexFunc(d.Failed, func(before FunctionFailure) bool { return f.same(before.Function) })
		switch {
		case at < 0 && len(d.Failed) > 0, len(d.Failed) == 0 && !f.compensated(c.Header):
			continue
		case at >= 0 && IsPermanent(d.Failed[at].Err):
			failures = append(failures, d.Failed[at])
			continue
		}
		if err := f.call(ctx, c); err != nil {
			failures = append(failures, FunctionFailure{f.Function, err})
		}
	}
	if len(failures) > 0 {
		return &FunctionsError{failures}
	}
	return nil
}

// call makes a panic an error with its stack, so that the other functions get their turn.
func (f EventFunction) call(ctx context.Context, c Commit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, p, debug.Stack())
		}
	}()
	return f.Handle(ctx, c)
}

// same reports whether f and o are one function; their Kind is not compared.
func (f Function) same(o Function) bool {
	return f.Context == o.Context && f.Processor == o.Processor && f.Name == o.Name
}

// String is "<context>.<processor>.<name>", without the parts that are not set.
func (f Function) String() string {
	return strings.Join(slices.DeleteFunc([]string{f.Context, f.Processor, f.Name}, func(s string) bool { return s == "" }), ".")
}

// Compensate marks a header as one of a message that is sent again, for f alone.
func (h *Header) Compensate(id string, f Function) {
	h.Set(HeaderCompensateID, id)
	h.Set(HeaderCompensateContext, f.Context)
	h.Set(HeaderCompensateProcessor, f.Processor)
	h.Set(HeaderCompensateFunction, f.Name)
}

// compensated reports whether a message of this header is for f.
func (f Function) compensated(h Header) bool {
	if _, again := h.Lookup(HeaderCompensateID); !again {
		return true
	}
	return f.same(Function{Context: h.Get(HeaderCompensateContext), Processor: h.Get(HeaderCompensateProcessor), Name: h.Get(HeaderCompensateFunction)})
}

// Skips reports whether a message of this header was sent again for a function that is
// not among s.Functions; buses acknowledge it without a call. What was a dead letter of
// this very group is not skipped.
func (s Subscription) Skips(ctx context.Context, h Header) bool {
	if _, again := h.Lookup(HeaderCompensateID); !again {
		return false
	}
	if d, _ := DeliveryOf(ctx); len(d.Failed) > 0 {
		return false
	}
	return !slices.ContainsFunc(s.Functions, func(f Function) bool { return f.compensated(h) })
}

// FunctionFailure is why a function did not handle a message. Err is nil where it is
// only known that it did not.
type FunctionFailure struct {
	Function Function
	Err      error
}

// FunctionsError says which of several functions failed; the others are done.
type FunctionsError struct{ Failures []FunctionFailure }

// Error is one line for each function: its name and its error.
func (e *FunctionsError) Error() string {
	lines := make([]string, len(e.Failures))
	for i, f := range e.Failures {
		lines[i] = fmt.Sprintf("function %s: %v", f.Function, f.Err)
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives [errors.Is] the errors of the functions that are worth another try, or,
// where none is, all: so it is permanent only if all are.
func (e *FunctionsError) Unwrap() []error {
	var again, all []error
	for _, f := range e.Failures {
		if all = append(all, f.Err); !IsPermanent(f.Err) {
			again = append(again, f.Err)
		}
	}
	if len(again) > 0 {
		return again
	}
	return all
}

// FailuresOf are the failures that err tells of, or those known before where err is no
// [FunctionsError]. Buses keep them between two calls for one message.
func FailuresOf(err error, before []FunctionFailure) []FunctionFailure {
	var e *FunctionsError
	if errors.As(err, &e) {
		return e.Failures
	}
	return before
}
