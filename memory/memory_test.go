package memory_test

import "github.com/headwater-go/headwater/es"
import "github.com/headwater-go/headwater/memory"

var (
	_ es.EventStore         = (*memory.EventStore)(nil)
	_ es.Scanner            = (*memory.EventStore)(nil)
	_ es.Outbox             = (*memory.EventStore)(nil)
	_ es.SnapshotStore[int] = (*memory.SnapshotStore[int])(nil)
	_ es.PrepareKey[int]    = (*memory.PrepareKey[int])(nil)
	_ es.CommandSender      = (*memory.CommandBus)(nil)
	_ es.CommandSubscriber  = (*memory.CommandBus)(nil)
	_ es.EventPublisher     = (*memory.EventBus)(nil)
	_ es.EventSubscriber    = (*memory.EventBus)(nil)
	_ es.StatePublisher     = (*memory.StateBus)(nil)
	_ es.StateSubscriber    = (*memory.StateBus)(nil)
)
