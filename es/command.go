package es

import (
	"context"
	"slices"
	"time"
)

// CommandBody is what a command says. Its name is stored and sent, so it never
// changes, whatever becomes of the Go type: "place_order".
type CommandBody interface{ CommandName() string }

// Command asks one aggregate for one decision. Wow calls it a command message.
// Only Aggregate and Body must be set; whoever sends or handles it fills the rest.
type Command struct {
	// ID identifies this message. Defaults to a new id.
	ID string
	// Aggregate is whom the command is for.
	Aggregate AggregateID
	// Name is the stored name. Defaults to the body's CommandName.
	Name string
	// Header travels with the command; some of it is propagated to its commit.
	Header Header
	// OwnerID, where set, must be the owner of an aggregate that exists already.
	OwnerID string
	// SpaceID, where set, must be the space of an aggregate that exists already.
	SpaceID string
	// RequestID makes the command idempotent: it is carried out at most once for
	// each aggregate, for ever. Defaults to ID.
	RequestID string
	// Expected, where set, is the version that the aggregate must be at; 0 = it must not exist.
	Expected *int
	// Create says that the aggregate must not exist yet. Implied by an Expected of 0.
	Create bool
	// AllowCreate lets the command create the aggregate where it does not exist.
	AllowCreate bool
	// Void commands are transported for other readers; no aggregate carries them out.
	Void bool
	// BodyType is Wow's JVM class name of the body. Defaults to the codec's table.
	BodyType string
	// Body is a [CommandBody], or a [Raw] for a type that the reader does not know.
	Body any
	// CreateTime is when it was made, in milliseconds. Defaults to now.
	CreateTime time.Time
	// Digest stands for the name and the body as they were sent: a codec sets it where it
	// reads a command, and does not write it; the same body must always give the same.
	// "" = not known.
	Digest string
}

// NewCommand is a command for an existing aggregate.
func NewCommand(id AggregateID, body CommandBody) Command {
	return Command{Aggregate: id, Name: body.CommandName(), Body: body}
}

// NewCreateCommand is a command that creates the aggregate.
func NewCreateCommand(id AggregateID, body CommandBody) Command {
	c := NewCommand(id, body)
	c.Create, c.Expected = true, new(int)
	return c
}

// Complete fills what is unset, each field with the default its comment names.
func (c *Command) Complete(newID func() string, now time.Time) {
	if c.ID == "" {
		c.ID = newID()
	}
	if c.RequestID == "" {
		c.RequestID = c.ID
	}
	if body, ok := c.Body.(CommandBody); ok && c.Name == "" {
		c.Name = body.CommandName()
	}
	if c.CreateTime.IsZero() {
		c.CreateTime = now.Truncate(time.Millisecond).UTC()
	}
	if _, ok := c.Header.Lookup(HeaderTraceID); !ok {
		c.Header = append(slices.Clip(c.Header), HeaderField{HeaderTraceID, c.ID})
	}
	if c.Create && c.Expected == nil {
		c.Expected = new(int)
	}
	if c.Expected != nil && *c.Expected == 0 {
		c.Create = true
	}
}

// Validate reports what keeps a completed command from being sent, as an [ErrInvalid].
func (c *Command) Validate() error {
	if err := c.Aggregate.Validate(); err != nil {
		return err
	}
	if c.Body == nil {
		return Invalid("command has no body")
	}
	if c.Expected != nil && *c.Expected < 0 {
		return Invalid("expected version %d is negative", *c.Expected)
	}
	return checkTexts(
		text{"command id", c.ID, true}, text{"request id", c.RequestID, true}, text{"command name", c.Name, true},
		text{"owner", c.OwnerID, false}, text{"space", c.SpaceID, false})
}

// Result is what became of a command that was carried out.
type Result struct {
	Aggregate AggregateID
	// Version is the version that the command produced, or the one it found where it
	// had nothing to add.
	Version int
	// Duplicate says that an earlier delivery of the same request had produced Version.
	Duplicate bool
}

// CommandHandler carries out one command. An error that is [ErrRefused] is the
// aggregate's answer; any other one is a fault.
type CommandHandler func(ctx context.Context, c Command) (Result, error)

type text struct {
	what, text string
	required   bool
}

func checkTexts(texts ...text) error {
	for _, t := range texts {
		if t.required && t.text == "" {
			return Invalid("%s is empty", t.what)
		}
		if err := checkText(t.what, t.text); err != nil {
			return err
		}
	}
	return nil
}
