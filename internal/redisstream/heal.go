package redisstream

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// learn remembers how far the group has got, for the case that it is lost before
// anything was read.
func (t *topic) learn(ctx context.Context) {
	groups, _ := t.rdb.XInfoGroups(ctx, t.name).Result() // unknown: Start counts
	for _, g := range groups {
		if g.Name == t.Group {
			t.reach(g.LastDeliveredID)
		}
	}
}

func (t *topic) reach(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = id
}

func (t *topic) reached() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// raiseFloor remembers what a sweep saw: the first entry that was pending, or that all
// was acknowledged that this process had read by then, and whatever came before.
func (t *topic) raiseFloor(first, read string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.floor = read; first != "" {
		t.floor = previous(first)
	}
}

// heal makes a group that is gone anew, and says what happened, at most once in ten
// seconds for each cause.
func (t *topic) heal(ctx context.Context, what string, err error) {
	t.log.Warn(ctx, what, "topic", t.name, "group", t.Group, "reason", err)
	switch redisrun.Word(err) {
	case "NOGROUP", "UNBLOCKED":
	default:
		return
	}
	start, err := t.resume(ctx)
	if err == nil {
		err = prepare(ctx, t.rdb, t.name, t.Group, start)
	}
	if err != nil {
		t.log.Warn(ctx, "group could not be made anew; trying on", "topic", t.name, "group", t.Group, "reason", err)
		return
	}
	tell(ctx, t.subscription, es.GroupRestored{Topic: t.name, Group: t.Group, From: start})
	t.log.Warn(ctx, "group was gone and is made anew", "topic", t.name, "group", t.Group, "from", string(start))
}

// resume is where a group that is gone begins again: before what was pending at the last
// sweep, be it a peer's, and before what this process holds, so that it becomes pending
// again. What was acknowledged since may come again. Without a sweep it is where this
// process had got to. A stream that was deleted and begun again may count from anywhere:
// it is read from the beginning.
func (t *topic) resume(ctx context.Context) (es.Start, error) {
	t.mu.Lock()
	last, from := t.last, t.last
	if t.floor != "" {
		from = t.floor
	}
	for at := range t.held {
		if at.stream == t.name && before(at.id, from) {
			from = previous(at.id)
		}
	}
	t.mu.Unlock()
	if last == "" {
		if t.Start == "" {
			return es.FromBeginning, nil
		}
		return t.Start, nil
	}
	info, err := redisrun.Do(ctx, 0, func() (*redis.XInfoStream, error) { return t.rdb.XInfoStream(ctx, t.name).Result() })
	switch {
	case isNoKey(err):
		return es.FromBeginning, nil
	case err != nil:
		return "", err
	case before(info.LastGeneratedID, last):
		return es.FromBeginning, nil
	}
	return es.Start(from), nil
}

// before compares two ids of entries: <milliseconds>-<number>.
func before(a, b string) bool {
	ams, an, _ := strings.Cut(a, "-")
	bms, bn, _ := strings.Cut(b, "-")
	if ams != bms {
		return less(ams, bms)
	}
	return less(an, bn)
}

// less compares decimal numbers without leading zeros.
func less(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// previous is the id just before one.
func previous(id string) string {
	ms, n, _ := strings.Cut(id, "-")
	if number, _ := strconv.ParseUint(n, 10, 64); number > 0 {
		return ms + "-" + strconv.FormatUint(number-1, 10)
	}
	at, _ := strconv.ParseUint(ms, 10, 64)
	return strconv.FormatUint(at-1, 10) + "-" + strconv.FormatUint(math.MaxUint64, 10)
}
