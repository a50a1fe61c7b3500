package memory_test

import (
	"testing"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/memory"
)

func newEventStore(*testing.T, ...es.Types) *memory.EventStore { return memory.NewEventStore() }

func TestEventStore(t *testing.T) { estest.TestEventStore(t, newEventStore) }

func TestScanner(t *testing.T) { estest.TestScanner(t, newEventStore) }

func TestOutbox(t *testing.T) { estest.TestOutbox(t, newEventStore) }

func TestSnapshotStore(t *testing.T) {
	estest.TestSnapshotStore(t, func(*testing.T, ...es.Types) *memory.SnapshotStore[estest.State] {
		return memory.NewSnapshotStore[estest.State]()
	})
}

func newPrepareKey[V any](*testing.T) *memory.PrepareKey[V] { return memory.NewPrepareKey[V]() }

func TestPrepareKey(t *testing.T) {
	estest.TestPrepareKey(t, newPrepareKey[string], newPrepareKey[estest.Holder])
}

func TestCommandBus(t *testing.T) {
	estest.TestCommandBus(t, func(*testing.T, ...es.Types) *memory.CommandBus { return memory.NewCommandBus() })
}

func TestEventBus(t *testing.T) {
	estest.TestEventBus(t, func(*testing.T, ...es.Types) *memory.EventBus { return memory.NewEventBus() })
}

func TestStateBus(t *testing.T) {
	estest.TestStateBus(t, func(*testing.T, ...es.Types) *memory.StateBus { return memory.NewStateBus() })
}
