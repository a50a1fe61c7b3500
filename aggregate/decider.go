// Package aggregate carries out commands: it loads an aggregate, lets it decide, and
// appends what it decided.
package aggregate

import "github.com/headwater-go/headwater/es"

// Decider declares a kind of aggregate as two pure functions. Its state begins as the
// zero value of S. Both functions may be called any number of times for one command.
type Decider[S any] struct {
	// Type names the aggregate.
	Type es.AggregateType
	// Decide answers a command: with events, with none where there is nothing to do,
	// or with an error, which refuses the command. It changes nothing.
	Decide func(s S, cmd es.Command) (es.Events, error)
	// Evolve is the state after an event. It cannot fail, and ignores events that it
	// does not know. Among them are [es.AggregateDeleted] and its like. The event is
	// about to be stored, or is another reader's too: a map or slice of it that the state
	// goes on changing is copied.
	Evolve func(s S, e es.Event) S
}
