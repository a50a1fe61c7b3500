package aggregate_test

import (
	"context"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/snapshot"
)

var everyThird = snapshot.EveryVersions(3)

// faulty is a snapshot store in memory that counts, and fails where it is told to.
type faulty struct {
	*memory.SnapshotStore[counter]
	loadErr, saveErr error
	saves            []int // versions; nil where nobody looks
}

func newFaulty() *faulty { return &faulty{SnapshotStore: memory.NewSnapshotStore[counter]()} }

func (f *faulty) Load(ctx context.Context, id es.AggregateID) (es.Snapshot[counter], error) {
	if f.loadErr != nil {
		return es.Snapshot[counter]{}, f.loadErr
	}
	return f.SnapshotStore.Load(ctx, id)
}

func (f *faulty) Save(ctx context.Context, s es.Snapshot[counter]) error {
	if f.saveErr != nil {
		return f.saveErr
	}
	return f.SnapshotStore.Save(ctx, s)
}
