package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/recovery"
)

const (
	keptTooLong = 7 * 24 * time.Hour
	stuck       = 5 * time.Minute
	stuckLong   = time.Hour
	gone        = 10 * time.Minute // as recovery.Reap has it
)

// retention looks at HW020 and HW021.
func (v *visit) retention(context.Context) {
	perDay := 0.0
	for _, s := range v.streams {
		first, last := inspect.EntryTime(s.First), inspect.EntryTime(s.Last)
		if span := last.Sub(first); span >= time.Hour && s.Length > 0 {
			perDay += float64(s.Bytes) / span.Hours() * 24
		}
		if s.Length > 0 && time.Since(first) > keptTooLong && v.acked(s.Topic, s.First) {
			v.add("HW020", Warning, s.Topic, "the oldest entry is %s old, and every group has handled it: nobody trims this stream", output.Age(time.Since(first)))
		}
	}
	var free int64
	for _, n := range v.nodes {
		if n.info.Int("maxmemory") == 0 {
			return
		}
		free += n.info.Int("maxmemory") - n.info.Int("used_memory")
	}
	if days := float64(free) / perDay; perDay > 0 && days < 14 {
		level := Warning
		if days < 2 {
			level = Error
		}
		v.add("HW021", level, "", "the streams grow by %s a day: memory is full in %.1f days", output.Bytes(int64(perDay)), max(days, 0))
	}
}

// acked says that every group of a topic has handled the entry, and that there is a group.
func (v *visit) acked(topic, entry string) bool {
	groups := 0
	for i := range v.groups {
		g := &v.groups[i]
		if g.Topic != topic {
			continue
		}
		groups++
		if g.Oldest == entry || g.Delivered == "0-0" || inspect.EntryTime(g.Delivered).Before(inspect.EntryTime(entry)) {
			return false
		}
	}
	return groups > 0
}

// readers looks at HW022 to HW024.
func (v *visit) readers(ctx context.Context) {
	for i := range v.groups {
		g := &v.groups[i]
		where := g.Name + " of " + g.Topic
		waiting := g.Pending + g.Retry
		if g.Unread != nil {
			waiting += *g.Unread
		}
		if g.Live() == 0 && waiting > 0 {
			v.add("HW022", Warning, where, "no living consumer reads the group, and %d entries wait for it", waiting)
		}
		if old := time.Duration(g.OldestMS) * time.Millisecond; g.Pending > 0 && v.pendingFor(ctx, g) >= stuck {
			level := Warning
			if v.pendingFor(ctx, g) >= stuckLong {
				level = Error
			}
			v.add("HW024", level, where, "an entry of %s ago was delivered and is not acknowledged", output.Age(old))
		}
	}
	for _, topic := range v.topics {
		v.dead(ctx, topic)
	}
}

// pendingFor is for how long the oldest pending entry was not touched.
func (v *visit) pendingFor(ctx context.Context, g *inspect.Group) time.Duration {
	idle, err := inspect.IdleOf(ctx, v.rdb, g.Topic, g.Name, g.Oldest)
	if err != nil {
		v.unable(g.Topic, "pending entries of "+g.Name, err)
	}
	return idle
}

// dead looks at HW023.
func (v *visit) dead(ctx context.Context, topic string) {
	r, err := recovery.Reap(ctx, v.rdb, topic, recovery.ReapOptions{DryRun: true})
	if err != nil {
		v.unable(topic, "dead consumers", err)
		return
	}
	if n := len(r.Consumers) + len(r.Groups); n > 0 {
		v.add("HW023", Note, topic, "gone for good, and holding nothing: consumers %d, groups of broadcasts %d", len(r.Consumers), len(r.Groups)).fix =
			func(ctx context.Context) (string, error) {
				done, err := recovery.Reap(ctx, v.rdb, topic, recovery.ReapOptions{})
				return fmt.Sprintf("removed: consumers %d, groups %d", len(done.Consumers), len(done.Groups)), err
			}
	}
}

// deadLetters looks at HW025.
func (v *visit) deadLetters(ctx context.Context) {
	d := recovery.NewDeadLetters(v.rdb)
	for _, s := range v.streams {
		if s.DeadLetters == 0 {
			continue
		}
		_, age, err := d.Oldest(ctx, recovery.LetterFilter{Topics: []string{s.Topic}})
		if err != nil {
			v.unable(s.Topic, "dead letters", redisrun.Explain(err))
			continue
		}
		v.add("HW025", Warning, s.Topic, "%d dead letters, the oldest for %s", s.DeadLetters, output.Age(age))
	}
}
