package commandbus

import (
	"maps"
	"sync"

	"github.com/headwater-go/headwater/es"
)

// waiting is one caller's wait: which signals concern it, and when it is over. Signals may
// come in any order, and more than once.
type waiting struct {
	command   es.Command
	plan      es.WaitPlan
	changed   chan struct{} // has room for one
	mu        sync.Mutex
	early     []es.Signal // that came before what they follow: SENT, or the saga
	main      progress
	tails     map[string]*progress // of the commands that the saga sent, by their ids
	results   []es.CommandResult   // that nobody has taken yet
	merged    map[string]any
	version   int
	processed bool // the main command is known to be carried out
	over      bool
}

// progress is how far one command has come.
type progress struct {
	sent, processed, reached, failed bool
	last                             es.Signal
}

func newWaiting(c es.Command, p es.WaitPlan) *waiting {
	return &waiting{command: c, plan: p, changed: make(chan struct{}, 1), tails: map[string]*progress{}}
}

// take takes a signal, and reports whether it concerns this wait.
func (w *waiting) take(s es.Signal) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	if !w.main.sent && !(s.CommandID == w.command.ID && s.Stage == es.StageSent) {
		w.early = append(w.early, s)
		return true
	}
	taken := w.apply(s)
	if taken {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	return taken
}

// apply takes a signal in its turn, and those that waited for it. The caller holds mu.
func (w *waiting) apply(s es.Signal) bool {
	if w.over {
		return false
	}
	wait, of := w.plan.Wait, &w.main
	if s.CommandID != w.command.ID {
		if wait.Tail == nil {
			return false
		}
		if wait, of = *wait.Tail, w.tails[s.CommandID]; of == nil {
			w.early = append(w.early, s)
			return true
		}
	} else {
		s.Aggregate = w.command.Aggregate // with its alias
	}
	if !of.take(wait, s) {
		return false
	}
	if w.merged == nil && len(s.Result) > 0 {
		w.merged = map[string]any{}
	}
	maps.Copy(w.merged, s.Result)
	if of == &w.main {
		if s.Version != 0 {
			w.version = s.Version
		}
		w.processed = of.processed
		if of.reached && w.plan.Tail != nil {
			for _, id := range of.last.Commands {
				if w.tails[id] == nil {
					w.tails[id] = &progress{}
				}
			}
		}
	}
	w.over = w.ended()
	w.results = append(w.results, w.result(s))
	if of == &w.main { // what came too early may follow this
		early := w.early
		w.early = nil
		for _, e := range early {
			w.apply(e)
		}
	}
	return true
}

// take reports whether the signal is one that was waited for.
func (p *progress) take(w es.Wait, s es.Signal) bool {
	failed := s.Err() != nil
	target := s.Stage == w.Stage && s.Function.Matches(w.Function) && (s.Stage != es.StageProjected || s.Last || failed)
	switch {
	case p.failed || !target && !(w.Stage.Needs(s.Stage) && s.Stage != w.Stage):
		return false
	case failed:
		p.failed, p.last = true, s
		return true
	case target && p.reached, s.Stage == es.StageSent && p.sent, s.Stage == es.StageProcessed && p.processed:
		return false
	}
	p.sent = p.sent || s.Stage == es.StageSent
	p.processed = p.processed || s.Stage == es.StageProcessed
	if target {
		p.reached, p.last = true, s
	}
	return true
}

func (p *progress) done(w es.Wait) bool {
	return p.reached && (p.processed || w.Stage == es.StageSent)
}

// ended reports that nothing more is waited for: a failure ends all. The caller holds mu.
func (w *waiting) ended() bool {
	if w.failure() != nil {
		return true
	}
	ended := w.main.done(w.plan.Wait)
	for _, tail := range w.tails {
		ended = ended && tail.done(*w.plan.Tail)
	}
	return ended
}

// failure is the part that failed, if one did. The caller holds mu.
func (w *waiting) failure() *progress {
	if w.main.failed {
		return &w.main
	}
	for _, tail := range w.tails {
		if tail.failed {
			return tail
		}
	}
	return nil
}

// result is a signal with what came before it. The caller holds mu.
func (w *waiting) result(s es.Signal) es.CommandResult {
	r := es.CommandResult{Signal: s, RequestID: w.command.RequestID}
	if s.CommandID == w.command.ID && s.Version == 0 {
		r.Version = w.version
	}
	r.Result = maps.Clone(w.merged)
	return r
}

// next takes the results that came, and says whether no more will.
func (w *waiting) next() (results []es.CommandResult, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	results, w.results = w.results, nil
	return results, w.over
}

// last is the result of the whole: the failure, or else that of the stage that was waited
// for.
func (w *waiting) last() es.CommandResult {
	w.mu.Lock()
	defer w.mu.Unlock()
	if failed := w.failure(); failed != nil {
		return w.result(failed.last)
	}
	return w.result(w.main.last)
}

// isProcessed reports that the command is known to be carried out.
func (w *waiting) isProcessed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.processed
}

// soFar is what is known of a command whose wait was given up.
func (w *waiting) soFar() es.CommandResult {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := es.Signal{WaitID: w.plan.ID, CommandID: w.command.ID, Aggregate: w.command.Aggregate, Stage: es.StageSent, Version: w.version}
	if w.processed {
		s.Stage = es.StageProcessed
	}
	return w.result(s)
}
