package aggregate

import (
	"context"
	"time"

	"github.com/headwater-go/headwater/es"
)

// headerStage and headerChain are of the two ways to wait: for a stage, which the
// commit says too, and for a chain, whose stage follows from it and goes unsaid.
const (
	headerStage = "command_wait_stage"
	headerChain = "command_wait_chain"
)

// propagated are the headers that a commit takes over from its command, in Wow's
// order (Wow v8.10.10); the trace stands between the two groups, and the command's
// digest, which is ours, after them.
var (
	propagatedFirst = []string{
		"command_wait_id", "command_wait_endpoint", headerStage, "command_wait_context",
		"command_wait_processor", "command_wait_function", headerChain, "command_wait_tail_stage",
		"command_wait_tail_context", "command_wait_tail_processor", "command_wait_tail_function", es.HeaderOperator,
	}
	propagatedLast = []string{es.HeaderUserAgent, es.HeaderRemoteIP}
)

func propagate(cmd *es.Command) es.Header {
	h := make(es.Header, 0, len(cmd.Header)+3)
	_, chain := cmd.Header.Lookup(headerChain)
	take := func(keys ...string) {
		for _, k := range keys {
			if v, ok := cmd.Header.Lookup(k); ok && !(chain && k == headerStage) {
				h = append(h, es.HeaderField{Key: k, Value: v})
			}
		}
	}
	take(propagatedFirst...)
	take(es.HeaderTraceID)
	h = append(h, es.HeaderField{Key: es.HeaderUpstreamID, Value: cmd.ID}, es.HeaderField{Key: es.HeaderUpstreamName, Value: cmd.Name})
	take(propagatedLast...)
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
