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
