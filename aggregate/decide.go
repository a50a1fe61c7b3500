package aggregate

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/headwater-go/headwater/es"
)

// accepts refuses a command that nothing could be decided about, and sets the digest.
func (r *Repository[S]) accepts(cmd *es.Command) error {
	if err := r.owns(cmd.Aggregate); err != nil {
		return err
	}
	if _, raw := cmd.Body.(es.Raw); raw {
		return fmt.Errorf("%w: command %q", es.ErrUnknownType, cmd.Name)
	}
	if err := cmd.Validate(); err != nil || r.Digest == nil || cmd.Digest != "" {
		return err
	}
	var err error
	cmd.Digest, err = r.Digest(cmd)
	return err
}

// owns refuses an aggregate of another type, whose events the decider does not know.
func (r *Repository[S]) owns(id es.AggregateID) error {
	if id.Type != r.Decider.Type {
		return es.Invalid("it is a %s, not a %s", id.Type, r.Decider.Type)
	}
	return nil
}

// check holds the command against what is known of the aggregate, in Wow's order
// (Wow v8.10.10).
func check(m *es.Meta, cmd *es.Command) error {
	_, recovers := cmd.Body.(es.RecoverAggregate)
	exists := m.Version > 0
	switch {
	case cmd.Expected != nil && *cmd.Expected != m.Version:
		return es.Refuse(fmt.Errorf("%w: it is %d, not %d", es.ErrExpectedVersion, m.Version, *cmd.Expected))
	case !exists && !cmd.Create && !cmd.AllowCreate:
		return es.Refuse(es.ErrNotFound)
	case exists && !blank(cmd.OwnerID) && cmd.OwnerID != m.OwnerID:
		return es.Refuse(es.ErrWrongOwner)
	case exists && !blank(cmd.SpaceID) && cmd.SpaceID != m.SpaceID:
		return es.Refuse(es.ErrWrongSpace)
	case recovers && !m.Deleted:
		return es.Refuse(es.ErrNotDeleted)
	case m.Deleted && !recovers:
		return es.Refuse(es.ErrDeleted)
	}
	return nil
}

// decide answers the commands that every aggregate knows, and asks the decider for
// the rest. A panic is an error with its stack; a decider's error is a refusal.
func (r *Repository[S]) decide(s S, cmd *es.Command) (events es.Events, err error) {
	switch body := cmd.Body.(type) {
	case es.DeleteAggregate:
		return es.Events{es.AggregateDeleted{}}, nil
	case es.RecoverAggregate:
		return es.Events{es.AggregateRecovered{}}, nil
	case es.ApplyResourceTags:
		return es.Events{es.ResourceTagsApplied(body)}, nil
	}
	defer caught("decide", cmd.Name, &err)
	events, err = r.Decider.Decide(s, *cmd)
	for i, e := range events {
		if err == nil && (e == nil || e.EventName() == "") { // a nil in a pointer panics here
			return nil, es.Invalid("event %d of %d is nil or has no name", i+1, len(events))
		}
	}
	return events, es.Refuse(err)
}

// apply evolves s by one commit, which must be the next one.
func (r *Repository[S]) apply(s *es.Snapshot[S], c *es.Commit) error {
	if c.Version != s.Version+1 {
		return es.Corrupt("version %d follows version %d", c.Version, s.Version)
	}
	advance(&s.Meta, c)
	for _, e := range c.Events {
		if _, raw := e.Body.(es.Raw); raw {
			return fmt.Errorf("%w: event %q revision %s", es.ErrUnknownType, e.Name, e.Revision)
		}
		if err := r.evolve(s, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *Repository[S]) evolve(s *es.Snapshot[S], e es.Event) (err error) {
	defer caught("evolve", e.Name, &err)
	amend(&s.Meta, e.Body)
	s.State = r.Decider.Evolve(s.State, e)
	return nil
}

// advance takes over what the commit itself says of the aggregate.
func advance(m *es.Meta, c *es.Commit) {
	operator := c.Header.Get(es.HeaderOperator)
	if m.Version == 0 {
		m.FirstOperator, m.FirstEventTime = operator, c.CreateTime
	}
	m.Version, m.EventID, m.Operator, m.EventTime = c.Version, c.ID, operator, c.CreateTime
	if !blank(c.OwnerID) {
		m.OwnerID = c.OwnerID
	}
	if !blank(c.SpaceID) {
		m.SpaceID = c.SpaceID
	}
}

// amend takes over what an event says of the aggregate rather than of its state.
func amend(m *es.Meta, body any) {
	switch body := body.(type) {
	case es.AggregateDeleted:
		m.Deleted = true
	case es.AggregateRecovered:
		m.Deleted = false
	case es.ResourceTagsApplied:
		m.Tags = body.Tags
	}
	if to, ok := body.(es.OwnerTransferred); ok {
		m.OwnerID = to.ToOwnerID()
	}
	if to, ok := body.(es.SpaceTransferred); ok {
		m.SpaceID = to.ToSpaceID()
	}
}

// differs reports that a commit of cmd's request id came from another command. Of one
// without a digest, such as a Kotlin node's, that is not known.
func differs(cmd *es.Command, stored *es.Commit) bool {
	digest := stored.Header.Get(es.HeaderCommandDigest)
	return digest != "" && cmd.Digest != "" && digest != cmd.Digest
}

// blank is what Wow takes for no owner and no space.
func blank(id string) bool { return strings.TrimSpace(id) == "" }

// caught turns a panic into an error, in a deferred call. The error keeps what it was
// panicked with, unless that would make an answer of it.
func caught(what, name string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %s %s: %w\n%s", es.ErrPanic, what, name, asError(p), debug.Stack())
	}
}

func asError(p any) error {
	if err, ok := p.(error); ok && !errors.Is(err, es.ErrRefused) {
		return err
	}
	return errors.New(fmt.Sprint(p))
}
