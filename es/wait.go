package es

import (
	"context"
	"time"
)

// Stage is how far a command has come. The texts are Wow's.
type Stage string

// The stages that a caller can wait for. The first two come before each of the others.
const (
	StageSent         Stage = "SENT"
	StageProcessed    Stage = "PROCESSED"
	StageSnapshot     Stage = "SNAPSHOT"
	StageProjected    Stage = "PROJECTED"
	StageEventHandled Stage = "EVENT_HANDLED"
	StageSagaHandled  Stage = "SAGA_HANDLED"
)

// Function names a handler: what kind of messages it handles, in which context, in
// which processor, and its own name.
type Function struct{ Kind, Context, Processor, Name string }

// FieldError is what is wrong with one field of a body.
type FieldError struct{ Name, Message string }

// Signal says what became of a command at one stage.
type Signal struct {
	// ID is that of the message whose handling ended: the command, a commit, an event.
	ID string
	// CommandID is the command's, which need not be the one that is waited for: a chain
	// ends with the commands that a saga sent.
	CommandID string
	Aggregate AggregateID
	Stage     Stage
	Function  Function
	// Version is the aggregate's; 0 = none.
	Version int
	// Last says, of a projection, that the event was the last of its commit.
	Last bool
	// Code is CodeOK, or the kind of the failure; Message says what failed.
	Code, Message string
	// Fields are what validation found.
	Fields []FieldError
	// Result is what handlers want the caller to know.
	Result map[string]any
	// Commands are the ids of the commands that a saga sent.
	Commands []string
	// Time is when it was made, in milliseconds.
	Time time.Time
}

// Notifier tells the process that waits for a command, where header says that one
// does and for this stage, what became of it. It fails no command: what cannot be told
// is logged, and the caller asks the store near its deadline.
type Notifier interface {
	Notify(ctx context.Context, header Header, s Signal)
}

// CodeOK is the code of what succeeded; the other codes are Wow's too.
const CodeOK = "Ok"
