package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
)

func ExampleNewEventStore() {
	ctx, store := context.Background(), memory.NewEventStore()
	placed := commit("o-1", 1)
	_, err := store.Append(ctx, es.AppendOptions{}, placed)
	fmt.Println("first:", err)
	again, _ := store.Append(ctx, es.AppendOptions{}, placed)
	fmt.Println("the same again:", again.Same)
	rival := commit("o-1", 1)
	rival.RequestID = "another"
	_, err = store.Append(ctx, es.AppendOptions{}, rival)
	fmt.Println("another one:", errors.Is(err, es.ErrVersionConflict))
	for c, err := range store.Load(ctx, orders.ID("o-1"), es.Versions{}) {
		if err != nil {
			panic(err)
		}
		fmt.Println("version", c.Version, c.Events[0].Name)
	}
	// Output:
	// first: <nil>
	// the same again: true
	// another one: true
	// version 1 stepped
}

func ExampleNewSnapshotStore() {
	ctx, snapshots := context.Background(), memory.NewSnapshotStore[step]()
	id := orders.ID("o-1")
	newest := es.Snapshot[step]{Meta: es.Meta{Aggregate: id, Version: 50}, State: step{N: 7}}
	older := es.Snapshot[step]{Meta: es.Meta{Aggregate: id, Version: 49}}
	fmt.Println(snapshots.Save(ctx, newest), snapshots.Save(ctx, older))
	loaded, _ := snapshots.Load(ctx, id)
	fmt.Println(loaded.Version, loaded.State.N)
	// Output:
	// <nil> <nil>
	// 50 7
}

func ExampleNewPrepareKey() {
	ctx, names := context.Background(), memory.NewPrepareKey[string]()
	mine, _ := names.Prepare(ctx, "ada", "user-1", 0)
	theirs, _ := names.Prepare(ctx, "ada", "user-2", 0)
	fmt.Println(mine, theirs)
	holder, _ := names.Get(ctx, "ada")
	fmt.Println(holder)
	// Output:
	// true false
	// user-1
}

func ExampleNewCommandBus() {
	ctx, stop := context.WithCancel(context.Background())
	bus := memory.NewCommandBus()
	_ = bus.Send(ctx, es.NewCommand(orders.ID("o-1"), step{N: 1}))
	err := bus.Subscribe(ctx, sub("dispatcher", orders), func(_ context.Context, c es.Command) (es.Result, error) {
		fmt.Println(c.Name, c.Aggregate)
		stop()
		return es.Result{}, nil
	})
	fmt.Println(err)
	// Output:
	// step sales.order/o-1@(0)
	// <nil>
}

func ExampleNewEventBus() {
	ctx, stop := context.WithCancel(context.Background())
	bus := memory.NewEventBus()
	projection := sub("projection", orders)
	_ = bus.Prepare(ctx, projection) // what is published from now on is not missed
	_ = bus.Publish(ctx, commit("o-1", 1))
	err := bus.Subscribe(ctx, projection, func(_ context.Context, c es.Commit) error {
		fmt.Println(c.Aggregate, c.Version, len(c.Events))
		stop()
		return nil
	})
	fmt.Println(err)
	// Output:
	// sales.order/o-1@(0) 1 2
	// <nil>
}

func ExampleNewStateBus() {
	ctx, stop := context.WithCancel(context.Background())
	bus := memory.NewStateBus()
	_ = bus.Publish(ctx, es.StateEvent{Commit: commit("o-1", 1), State: step{N: 7}})
	err := bus.Subscribe(ctx, sub("search", orders), func(_ context.Context, e es.StateEvent) error {
		fmt.Println(e.Version, e.State.(step).N)
		stop()
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 7
	// <nil>
}
