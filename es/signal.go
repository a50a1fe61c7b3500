package es

import (
	"context"
	"time"
)

// Signal says what became of a command at one stage.
type Signal struct {
	// ID is that of the message whose handling ended: the command, a commit, an event.
	ID string
	// WaitID is that of the wait; a [Notifier] takes it from the header.
	WaitID string
	// CommandID is the command's, which need not be the one that is waited for: a chain
	// ends with the commands that a saga sent.
	CommandID string
	// Aggregate has no Alias where the signal came from another process.
	Aggregate AggregateID
	Stage     Stage
	Function  Function
	// Version is the aggregate's; 0 = none.
	Version int
	// Last says, of a projection, that the event was the last of its commit.
	Last bool
	// Code is [CodeOK], or the kind of the failure; Message says what failed.
	Code, Message string
	// Fields are what validation found.
	Fields []FieldError
	// Result is what handlers want the caller to know; a number that came from another
	// process is a json.Number.
	Result map[string]any
	// Commands are the ids of the commands that a saga sent.
	Commands []string
	// Time is when it was made, in milliseconds.
	Time time.Time
}

// Err is nil where the code is [CodeOK] or unset, else a [*CodeError].
func (s Signal) Err() error {
	if s.Code == CodeOK || s.Code == "" {
		return nil
	}
	return &CodeError{Code: s.Code, Message: s.Message, Fields: s.Fields}
}

// Fail makes s one of a failure; nil leaves it a success.
func (s *Signal) Fail(err error) {
	s.Code = CodeOf(err)
	if err != nil {
		s.Message, s.Fields = err.Error(), FieldsOf(err)
	}
}

// Notifier tells the process that waits for a command, where header says that one
// does and for this stage, what became of it. It does not wait for the other process, and
// fails no command: what cannot be told is logged, and the caller asks the store near its
// deadline.
type Notifier interface {
	Notify(ctx context.Context, header Header, s Signal)
}

// CommandResult is what a caller that waited is told: the signal of the stage that ended
// its wait, with what the signals before it had to say. Its JSON is Wow's.
type CommandResult struct {
	Signal
	// RequestID is the command's.
	RequestID string
}
