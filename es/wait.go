package es

import (
	"slices"
	"strings"
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

var stages = []Stage{StageSent, StageProcessed, StageSnapshot, StageProjected, StageEventHandled, StageSagaHandled}

// Valid reports whether s is one of the stages.
func (s Stage) Valid() bool { return slices.Contains(stages, s) }

// Needs reports whether a command that is waited for at s has to come through o: s itself,
// and SENT and PROCESSED where they come before it.
func (s Stage) Needs(o Stage) bool {
	return o == s || o == StageSent || o == StageProcessed && s != StageSent
}

// Function names a handler: what kind of messages it handles, in which context, in
// which processor, and its own name.
type Function struct{ Kind, Context, Processor, Name string }

// Matches reports whether f has the parts that filter sets; Kind is not compared.
func (f Function) Matches(filter Function) bool {
	match := func(part, want string) bool { return blank(want) || part == want }
	return match(f.Context, filter.Context) && match(f.Processor, filter.Processor) && match(f.Name, filter.Name)
}

// Wait says what a caller waits for.
type Wait struct {
	// Stage defaults to [StageProcessed], or with a Tail to [StageSagaHandled], the only
	// one that has a tail.
	Stage Stage
	// Function is whose handling is waited for, at the stages after PROCESSED; each part
	// that is not set stands for any.
	Function Function
	// Tail, where set, is what each of the commands that the saga sends is waited for
	// after that: a chain. A tail has no tail.
	Tail *Wait
}

// WithDefaults is w with its stages set. Stages that there are not, a tail of another stage
// than SAGA_HANDLED, or of a tail, are an [ErrInvalid].
func (w Wait) WithDefaults() (Wait, error) {
	if w.Stage == "" {
		w.Stage = StageProcessed
		if w.Tail != nil {
			w.Stage = StageSagaHandled
		}
	}
	switch {
	case !w.Stage.Valid():
		return w, Invalid("there is no stage %q", string(w.Stage))
	case w.Tail == nil:
		return w, nil
	case w.Stage != StageSagaHandled, w.Tail.Tail != nil:
		return w, Invalid("a chain begins at %s and has one tail", StageSagaHandled)
	}
	tail, err := w.Tail.WithDefaults()
	w.Tail = &tail
	return w, err
}

// Names of the headers that say who waits for a command, and for what.
const (
	HeaderWaitID       = "command_wait_id"
	HeaderWaitEndpoint = "command_wait_endpoint"
	HeaderWaitStage    = "command_wait_stage"
	HeaderWaitChain    = "command_wait_chain"

	headerWait = "command_wait_"
	headerTail = "command_wait_tail_"
)

// WaitHeaders are the names of all of them, in the order in which they are propagated from
// a command to its commit.
func WaitHeaders() []string {
	return []string{
		HeaderWaitID, HeaderWaitEndpoint, HeaderWaitStage, headerWait + "context", headerWait + "processor", headerWait + "function",
		HeaderWaitChain, headerTail + "stage", headerTail + "context", headerTail + "processor", headerTail + "function",
	}
}

// WaitPlan is what a message's header says of who waits.
type WaitPlan struct {
	// ID is that of the wait; signals name it. Kotlin nodes read it as an [ID].
	ID string
	// Endpoint is where the waiting process is told.
	Endpoint string
	Wait
}

// WaitPlanOf reads a header, of a command or of what came of it; false = nobody waits.
func WaitPlanOf(h Header) (WaitPlan, bool) {
	id, ok := h.Lookup(HeaderWaitID)
	p := WaitPlan{ID: id, Endpoint: h.Get(HeaderWaitEndpoint)}
	tail, hasTail := part(h, headerTail)
	switch _, chain := h.Lookup(HeaderWaitChain); {
	case !ok || id == "":
		return WaitPlan{}, false
	case chain:
		p.Wait, _ = part(h, headerWait)
		p.Stage, p.Tail = StageSagaHandled, &tail
		if !hasTail {
			tail.Stage = StageProcessed
		}
	default:
		var stage bool
		if p.Wait, stage = part(h, headerWait); !stage { // of a command that a saga sent
			p.Wait = tail
		}
	}
	return p, p.Stage.Valid() && (p.Tail == nil || p.Tail.Stage.Valid())
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func part(h Header, prefix string) (Wait, bool) {
	stage, ok := h.Lookup(prefix + "stage")
	return Wait{
		Stage:    Stage(stage),
		Function: Function{Context: h.Get(prefix + "context"), Processor: h.Get(prefix + "processor"), Name: h.Get(prefix + "function")},
	}, ok
}

// Write puts the plan at the end of a header, in place of another one that stood there.
func (p WaitPlan) Write(h *Header) {
	names := WaitHeaders()
	*h = slices.DeleteFunc(slices.Clone(*h), func(f HeaderField) bool { return slices.Contains(names, f.Key) })
	h.Set(HeaderWaitID, p.ID)
	h.Set(HeaderWaitEndpoint, p.Endpoint)
	if p.Tail == nil {
		h.Set(HeaderWaitStage, string(p.Stage))
	}
	write(h, headerWait, p.Function)
	if p.Tail != nil {
		h.Set(HeaderWaitChain, "simple")
		h.Set(headerTail+"stage", string(p.Tail.Stage))
		write(h, headerTail, p.Tail.Function)
	}
}

func write(h *Header, prefix string, f Function) {
	for _, field := range []HeaderField{{prefix + "context", f.Context}, {prefix + "processor", f.Processor}, {prefix + "function", f.Name}} {
		if !blank(field.Value) {
			h.Set(field.Key, field.Value)
		}
	}
}

// PropagateWait gives a saga's command what it is to take over from the header of the event
// that it answers: of a chain, who waits and for which tail; else nothing.
func PropagateWait(event Header, command *Header) {
	if _, chain := event.Lookup(HeaderWaitChain); !chain {
		return
	}
	for _, key := range WaitHeaders() {
		taken := key == HeaderWaitID || key == HeaderWaitEndpoint || strings.HasPrefix(key, headerTail)
		if value, ok := event.Lookup(key); ok && taken {
			command.Set(key, value)
		}
	}
}
