package aggregate

import (
	"context"
	"time"

	"github.com/headwater-go/headwater/es"
)

// propagate is what a commit takes over from its command, in Wow's order (Wow v8.10.10): who
// waits, the operator, the trace, the request; and after them the command's digest, which
// is ours. The stage of a chain goes unsaid, since it follows from it.
func propagate(cmd *es.Command) es.Header {
	h := make(es.Header, 0, len(cmd.Header)+3)
	_, chain := cmd.Header.Lookup(es.HeaderWaitChain)
	take := func(keys ...string) {
		for _, k := range keys {
			if v, ok := cmd.Header.Lookup(k); ok && !(chain && k == es.HeaderWaitStage) {
				h = append(h, es.HeaderField{Key: k, Value: v})
			}
		}
	}
	take(es.WaitHeaders()...)
	take(es.HeaderOperator, es.HeaderTraceID)
	h = append(h, es.HeaderField{Key: es.HeaderUpstreamID, Value: cmd.ID}, es.HeaderField{Key: es.HeaderUpstreamName, Value: cmd.Name})
	take(es.HeaderUserAgent, es.HeaderRemoteIP)
	if cmd.Digest != "" {
		h = append(h, es.HeaderField{Key: es.HeaderCommandDigest, Value: cmd.Digest})
	}
	return h
}

// commit is what cmd adds to an aggregate of which m is known.
func (r *Repository[S]) commit(m *es.Meta, cmd *es.Command, events es.Events) es.Commit {
	c := es.Commit{
		ID: r.NewID(), Aggregate: cmd.Aggregate, Header: propagate(cmd), OwnerID: cmd.OwnerID, SpaceID: cmd.SpaceID,
		CommandID: cmd.ID, RequestID: cmd.RequestID, Version: m.Version + 1,
		Events: make([]es.Event, len(events)), CreateTime: time.Now().UTC().Truncate(time.Millisecond),
	}
	if blank(c.OwnerID) {
		c.OwnerID = m.OwnerID
	}
	if blank(c.SpaceID) {
		c.SpaceID = m.SpaceID
	}
	for i, body := range events {
		c.Events[i] = es.NewEvent(r.NewID(), body)
	}
	c.Derive()
	return c
}

// save keeps a snapshot where the strategy asks for one, or where one that cannot be
// used must go. It never fails the command: a missing snapshot costs time, no more.
func (r *Repository[S]) save(ctx context.Context, now *live[S]) {
	if r.Snapshots == nil || now.bad == nil && !r.Strategy(now.saved, now.Meta) {
		return
	}
	now.SnapshotTime = time.Now().UTC().Truncate(time.Millisecond)
	var err error
	if now.bad != nil {
		_, err = r.Snapshots.Replace(ctx, now.bad, now.Snapshot)
	} else {
		err = r.Snapshots.Save(ctx, now.Snapshot)
	}
	if err != nil {
		r.warn(ctx, unsaved, &now.Meta, err)
		return
	}
	now.saved, now.bad = now.Meta, nil
	r.warned.forget(now.Aggregate)
}
