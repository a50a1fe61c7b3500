package aggregate

import (
	"context"
	"time"

	"github.com/headwater-go/headwater/es"
)

// processed tells whoever waits what became of the command. A fault that the bus will try
// again is no answer yet.
func (r *Repository[S]) processed(ctx context.Context, cmd *es.Command, version int, err error) {
	if r.Notifier == nil || err != nil && !is(err, es.ErrRefused) && (transient(err) || is(err, es.ErrVersionConflict)) {
		return
	}
	r.signal(ctx, cmd, es.StageProcessed, version, err)
}

// decided tells whoever waits that the strategy has decided about a snapshot.
func (r *Repository[S]) decided(ctx context.Context, cmd *es.Command, version int) {
	if r.Notifier != nil {
		r.signal(ctx, cmd, es.StageSnapshot, version, nil)
	}
}

func (r *Repository[S]) signal(ctx context.Context, cmd *es.Command, stage es.Stage, version int, err error) {
	s := es.Signal{
		ID: cmd.ID, CommandID: cmd.ID, Aggregate: cmd.Aggregate, Stage: stage, Version: version, Time: time.Now(),
		Function: es.Function{Kind: "COMMAND", Context: cmd.Aggregate.Type.Context, Processor: cmd.Aggregate.Type.Name, Name: cmd.Name},
	}
	if stage == es.StageSnapshot {
		s.Function = es.Function{Kind: "STATE_EVENT", Context: cmd.Aggregate.Type.Context, Processor: "SnapshotDispatcher", Name: "save"}
	}
	s.Fail(err)
	if cmd.Create && is(err, es.ErrVersionConflict) {
		s.Code = es.CodeDuplicateAggregate
	}
	r.Notifier.Notify(ctx, cmd.Header, s)
}
