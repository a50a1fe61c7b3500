package redisstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

// keep renews the lease until ctx ends, whatever else goes on.
func (t *topic) keep(ctx context.Context) {
	every := time.NewTicker(t.Lease / 3)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			t.renew(ctx)
		}
	}
}

// look looks for what dead consumers left, and tidies up, until ctx ends.
func (t *topic) look(ctx context.Context) {
	sweep := time.NewTimer(jitter(t.Sweep))
	defer sweep.Stop()
	tidy := time.NewTimer(jitter(time.Minute))
	defer tidy.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			if !t.NoRecovery && !t.Valve.Closed() {
				t.sweep(ctx, t.name)
				t.sweep(ctx, t.retry)
			}
			sweep.Reset(t.Sweep/2 + jitter(t.Sweep))
		case <-tidy.C:
			t.tidy(ctx)
			tidy.Reset(time.Minute/2 + jitter(time.Minute))
		}
	}
}

func (t *topic) renew(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, t.Lease/3)
	defer cancel()
	began := time.Now()
	err := t.group.Renew(short)
	if err == nil {
		t.tenure.confirm(began)
		t.can(ctx, t.condition, toLease)
	} else if !errors.Is(err, context.Canceled) {
		t.cannot(ctx, t.condition, toLease, err)
		t.log.Warn(ctx, "lease was not renewed; trying on", "topic", t.name, "group", t.Group, "reason", err)
	}
}

// sweep takes over what there is, as far as there is room for it.
func (t *topic) sweep(ctx context.Context, stream string) {
	held := func(id string) bool { return t.holds(stream, id) }
	var lapses int64
	take := func(entries []recovery.Entry) {
		for _, e := range entries {
			own := &entry{stream: stream, id: e.ID, failures: e.Failures, cause: e.Cause, deliveries: e.Deliveries, lapses: lapses, recovered: true}
			own.meantFor(e.Function)
			t.take(ctx, own, e.Fields)
		}
	}
	for {
		room := t.lanes.reserve(ctx, forSweeps, maxRead)
		if room == 0 {
			return
		}
		read := t.reached()
		lapses = t.tenure.lapses.Load()
		swept, err := t.group.Sweep(ctx, stream, room, held, take)
		if swept.Looked && stream == t.name {
			t.raiseFloor(swept.First, read)
		}
		t.lanes.release(room)
		if swept.Claimed+swept.Found > 0 {
			tell(ctx, t.subscription, es.Claimed{Topic: t.name, Group: t.Group, Claimed: swept.Claimed, Found: swept.Found})
		}
		if len(swept.Gone) > 0 {
			tell(ctx, t.subscription, es.Missing{Topic: t.name, Group: t.Group, IDs: swept.Gone})
			t.log.Warn(ctx, "pending entries are no longer in the stream", "topic", t.name, "group", t.Group, "ids", swept.Gone)
		}
		if err != nil && ctx.Err() == nil {
			t.heal(ctx, "looking for entries of dead consumers failed; trying on", err)
		}
		if err != nil || !swept.More || swept.Claimed+swept.Found == 0 {
			return
		}
	}
}

// tidy removes consumers that are gone for good, and letters that are over their age.
func (t *topic) tidy(ctx context.Context) {
	if _, err := recovery.Reap(ctx, t.rdb, t.name, recovery.ReapOptions{}); err != nil && ctx.Err() == nil {
		t.log.Warn(ctx, "reaping dead consumers failed; trying on", "topic", t.name, "group", t.Group, "reason", err)
	}
	letters := recovery.NewDeadLetters(t.rdb)
	if t.Observer != nil {
		letters.Observer = teller{t.subscription}
	}
	expired, err := letters.Expire(ctx, recovery.Retention{}, t.name)
	if err != nil && ctx.Err() == nil {
		t.log.Warn(ctx, "removing old dead letters failed; trying on", "topic", t.name, "group", t.Group, "reason", err)
	}
	for _, e := range expired {
		t.log.Warn(ctx, "dead letters were removed", "topic", t.name, "group", t.Group, "too old", e.TooOld, "too many", e.TooMany)
	}
}

// leave gives back what was not handled, and ends the lease, so that peers take over at
// their next sweep.
func (t *topic) leave(ctx context.Context) {
	left := map[string][]string{}
	t.mu.Lock()
	for at, counted := range t.held {
		if counted {
			left[at.stream] = append(left[at.stream], at.id)
		}
	}
	t.mu.Unlock()
	for stream, ids := range left {
		if err := t.group.GiveBack(ctx, stream, ids); err != nil {
			t.log.Warn(ctx, "entries were not given back; they will be recovered", "topic", t.name, "group", t.Group, "reason", err)
		}
	}
	if err := t.group.Leave(ctx); err != nil {
		t.log.Warn(ctx, "lease was not ended; it runs out", "topic", t.name, "group", t.Group, "reason", err)
	}
	if t.Broadcast {
		t.tidy(ctx)
	}
}

func jitter(d time.Duration) time.Duration { return rand.N(d) }
