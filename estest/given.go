package estest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
)

// Epoch is when everything happens in a [Scenario], unless a command says otherwise.
var Epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Scenario is an aggregate with a history.
type Scenario[S any] struct {
	decider aggregate.Decider[S]
	history []es.EventBody
}

// Given is an aggregate to which these events happened, each in a commit of its own.
// The rules are the decider's alone: what a repository answers before it asks the
// decider (deleted, another owner, another version) is not among them.
func Given[S any](d aggregate.Decider[S], history ...es.EventBody) Scenario[S] {
	return Scenario[S]{decider: d, history: history}
}

// When asks the aggregate for a decision.
func (s Scenario[S]) When(body es.CommandBody) Outcome[S] {
	return s.WhenCommand(es.NewCommand(es.AggregateID{}, body))
}

// WhenCommand is [Scenario.When] for a rule that looks at more than the body. What is
// unset gets a default: the aggregate the id "a-1", the command the id "command-1".
func (s Scenario[S]) WhenCommand(c es.Command) Outcome[S] {
	if c.Aggregate == (es.AggregateID{}) {
		c.Aggregate = s.decider.Type.ID("a-1")
	}
	c.Complete(func() string { return "command-1" }, Epoch)
	var state S
	for i, body := range s.history {
		state = s.evolve(state, c, i+1, body)
	}
	o := Outcome[S]{scenario: s, command: c}
	if o.events, o.err = decide(s.decider, state, c); o.err != nil {
		o.events = nil
	}
	o.state = s.evolve(state, c, len(s.history)+1, o.events...)
	return o
}

// decide takes the decider's answer as a repository does.
func decide[S any](d aggregate.Decider[S], state S, c es.Command) (es.Events, error) {
	events, err := d.Decide(state, c)
	if at := slices.Index(events, nil); at >= 0 && err == nil {
		return nil, es.Invalid("event %d of %d is nil", at+1, len(events))
	}
	return events, es.Refuse(err)
}

// evolve applies the events as one commit.
func (s Scenario[S]) evolve(state S, c es.Command, version int, bodies ...es.EventBody) S {
	commit := es.Commit{Aggregate: c.Aggregate, Version: version, CreateTime: c.CreateTime}
	for i, body := range bodies {
		commit.Events = append(commit.Events, es.NewEvent(fmt.Sprintf("event-%d-%d", version, i+1), body))
	}
	commit.Derive()
	for _, e := range commit.Events {
		state = s.decider.Evolve(state, e)
	}
	return state
}

// Outcome is what became of the command. Its methods fail the test, at once, where it
// was something else, and return it for more of them.
type Outcome[S any] struct {
	scenario Scenario[S]
	command  es.Command
	events   es.Events
	err      error
	state    S
}

// Then says that exactly these events were decided, in this order.
func (o Outcome[S]) Then(t testing.TB, events ...es.EventBody) Outcome[S] {
	t.Helper()
	if o.err != nil || !sameEvents(events, o.events) {
		o.fail(t, list(events))
	}
	return o
}

// ThenNothing says that the command was accepted and there was nothing to do.
func (o Outcome[S]) ThenNothing(t testing.TB) Outcome[S] {
	t.Helper()
	return o.Then(t)
}

// ThenError says that the command was refused with an error that [errors.Is] target.
func (o Outcome[S]) ThenError(t testing.TB, target error) Outcome[S] {
	t.Helper()
	if o.err == nil || !errors.Is(o.err, target) {
		o.fail(t, fmt.Sprintf("\n\terror %q", fmt.Sprint(target)))
	}
	return o
}

// ThenState says what the state is after the decision; after a refusal it is the one before.
func (o Outcome[S]) ThenState(t testing.TB, want S) Outcome[S] {
	t.Helper()
	if !assert.ObjectsAreEqual(want, o.state) {
		t.Fatalf("%swant state\n\t%+v\ngot state\n\t%+v", o.story(), want, o.state)
	}
	return o
}

func (o Outcome[S]) fail(t testing.TB, want string) {
	t.Helper()
	got := list(o.events)
	if o.err != nil {
		got = fmt.Sprintf("\n\terror %q", o.err.Error())
	}
	t.Fatalf("%swant%s\ngot%s", o.story(), want, got)
}

// story is the scenario up to the command, for a failure to begin with.
func (o Outcome[S]) story() string {
	return fmt.Sprintf("\ngiven%s\nwhen\n\t%s\n", list(o.scenario.history), described(o.command.Name, o.command.Body))
}

func sameEvents(want []es.EventBody, got es.Events) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if !assert.ObjectsAreEqual(want[i], got[i]) {
			return false
		}
	}
	return true
}

func list(events []es.EventBody) string {
	if len(events) == 0 {
		return "\n\tno events"
	}
	var b strings.Builder
	for _, e := range events {
		b.WriteString("\n\t" + described(e.EventName(), e))
	}
	return b.String()
}

// described shows the type too: a pointer beside a value explains itself.
func described(name string, body any) string { return fmt.Sprintf("%s: %T%+v", name, body, body) }
