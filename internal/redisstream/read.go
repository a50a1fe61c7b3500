package redisstream

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/recovery"
)

// maxRead limits the entries of one reply.
const maxRead = 100

// read reads the topic, and what is replayed to the group, until ctx is done.
func (t *topic) read(ctx context.Context) {
	t.begin(ctx)
	c := &connection{reading: t.reads, topic: t.name}
	defer c.drop()
	wait, waiting := time.Duration(0), true
	for t.Valve.Wait(ctx) == nil {
		// Who waits for messages keeps no more than a share of the room from others.
		most := maxRead
		if waiting {
			most = max(1, min(maxRead, t.Prefetch/(2*len(t.Topics))))
		}
		n := t.lanes.reserve(ctx, forReads, most)
		if n == 0 {
			return
		}
		began, lapses := time.Now(), t.tenure.lapses.Load()
		streams, err := c.read(ctx, t, n, waiting)
		got := t.takeAll(ctx, streams, lapses)
		t.lanes.release(n)
		switch {
		case err == nil || errors.Is(err, redis.Nil):
			wait = 0
			t.can(ctx, t.condition, toRead)
			if waiting && got == 0 && time.Since(began) < c.block/2 {
				wait = c.block // something on the way does not let reads wait
			}
			waiting = got < n
		case ctx.Err() != nil:
			return
		default:
			c.fail(ctx)
			t.cannot(ctx, t.condition, toRead, err)
			t.heal(ctx, "reading failed; trying on", err)
			wait = min(2*wait+100*time.Millisecond, 5*time.Second)
			wait = wait/2 + jitter(wait/2+1)
		}
		if wait > 0 && !pause(ctx, wait) {
			return
		}
	}
}

func (t *topic) takeAll(ctx context.Context, streams []redis.XStream, lapses int64) (n int) {
	for _, s := range streams {
		for _, m := range s.Messages {
			e, fields := &entry{stream: s.Stream, id: m.ID, lapses: lapses}, fieldsOf(m.Values)
			if s.Stream == t.name {
				t.reach(m.ID)
			} else {
				e.meantFor(recovery.RetryFunction(fields))
				fields, _, _, e.bad = recovery.ReadRetry(fields)
			}
			t.take(ctx, e, fields)
			n++
		}
	}
	return n
}

func fieldsOf(values map[string]any) recovery.Fields {
	f := make(recovery.Fields, 0, 2*len(values))
	for name, value := range values {
		text, _ := value.(string)
		f = append(f, name, text)
	}
	return f
}

// begin writes the lease before the first read, so that nobody claims what is read.
func (t *topic) begin(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		err := t.group.Renew(ctx)
		if err == nil {
			t.tenure.confirm(began)
			t.can(ctx, t.condition, toLease)
			break
		}
		t.log.Warn(ctx, "lease could not be taken; trying on", "topic", t.name, "group", t.Group, "reason", err)
		t.cannot(ctx, t.condition, toLease, err)
		pause(ctx, 200*time.Millisecond)
	}
	t.learn(ctx)
}
