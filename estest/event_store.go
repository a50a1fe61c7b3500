package estest

import (
	"slices"
	"testing"

	"github.com/headwater-go/headwater/es"
)

// TestEventStore tests what [es.EventStore] promises. Each test calls newStore with the
// tables of aggregate types that no other test has, so the stores may share a database,
// and must where newStore is called twice in one test.
func TestEventStore[S es.EventStore](t *testing.T, newStore func(t *testing.T, types ...es.Types) S) {
	open := func(t *testing.T, types ...es.Types) es.EventStore { return newStore(t, types...) }
	runChecks(t, open, slices.Concat(appendChecks, answerChecks, faultChecks, loadChecks, payloadChecks, keyChecks, raceChecks))
}
