package recovery

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// TrimOptions say what may go. At least one limit must be set: else it is an
// [es.ErrInvalid].
type TrimOptions struct {
	// MaxAge is the age above which entries go that every group has acked. A
	// millisecond lets go of all that is acked. Defaults to no limit.
	MaxAge time.Duration
	// MaxLen is the length above which entries go that every group has acked. Defaults
	// to no limit.
	MaxLen int64
	// LossyMaxAge is the age above which entries go whatever the groups have done with
	// them: messages are lost. Defaults to no limit.
	LossyMaxAge time.Duration
	// LossyMaxLen is the length above which entries go whatever the groups have done
	// with them: messages are lost. Defaults to no limit.
	LossyMaxLen int64
	// Observer is told of an [es.Trimmed] where entries went or were held back; a panic of
	// it is swallowed. Defaults to none.
	Observer es.Observer
}

// Trimmed is what [Trim] did.
type Trimmed struct {
	// Removed counts entries that every group had acked.
	Removed int64
	// Lost counts entries that some group had not acked, or that no group was there to
	// read. Only a lossy limit loses any.
	Lost int64
	// Cleared counts those that a group had pending and lost: they are pending no more.
	Cleared int64
	// HeldBack are the groups that have not acked entries over a limit, which are kept
	// for them, with what they have yet to do.
	HeldBack []Backlog
	// LostBy are the groups that entries were lost for, as they stood just before.
	LostBy []Backlog
}

// Backlog is what a group has yet to do.
type Backlog struct {
	Group string
	// First is the id of the first entry that it has not acked.
	First string
	// Pending counts what its consumers have read and not acked.
	Pending int64
	// Unread counts what no consumer has read. It means nothing unless UnreadKnown:
	// Redis loses count where entries are deleted, and before 7.0 does not count.
	Unread      int64
	UnreadKnown bool
}

// Trim removes entries from a topic's stream, never one that a group has not acked
// unless a lossy limit says so. Without any group there is nobody to have acked, and
// only a lossy limit removes entries. A group that is made later finds what is left:
// whoever is to read a topic prepares the group first. What the groups' retry streams
// hold and was acked goes as well, and is not counted.
//
// It works in steps of about a thousand entries, each of which looks at all groups and
// trims in one script. ctx ends it between them; what was done until then is returned.
func Trim(ctx context.Context, rdb redis.UniversalClient, topic string, o TrimOptions) (Trimmed, error) {
	limits, err := o.args()
	if err == nil {
		err = checkTopic(topic)
	}
	if err != nil {
		return Trimmed{}, trimError(topic, err)
	}
	done, groups, err := trim(ctx, rdb, topic, limits)
	if len(done.HeldBack) > 0 || done.Removed+done.Lost > 0 {
		told := es.Trimmed{Topic: topic, Removed: done.Removed, Lost: done.Lost}
		for _, b := range done.HeldBack {
			told.HeldBack = append(told.HeldBack, b.Group)
		}
		_ = es.Tell(ctx, o.Observer, told)
	}
	if err != nil {
		return done, trimError(topic, err)
	}
	for _, group := range groups {
		if _, _, err := trim(ctx, rdb, rediskey.Retry(topic, group), []any{"0", "", "", ""}); err != nil {
			return done, trimError(topic+" (retries of "+group+")", err)
		}
	}
	return done, nil
}

func trimError(topic string, err error) error { return &es.Error{Op: "trim " + clip(topic), Err: err} }

func (o TrimOptions) args() ([]any, error) {
	args, set := make([]any, 4), false
	for i, limit := range []struct {
		n    int64
		what string
	}{
		{milliseconds(o.MaxAge), "max age"}, {o.MaxLen, "max length"},
		{milliseconds(o.LossyMaxAge), "lossy max age"}, {o.LossyMaxLen, "lossy max length"},
	} {
		switch {
		case limit.n < 0:
			return nil, es.Invalid("%s is negative", limit.what)
		case limit.n > 0:
			args[i], set = strconv.FormatInt(limit.n, 10), true
		default:
			args[i] = ""
		}
	}
	if !set {
		return nil, es.Invalid("no limit is set")
	}
	return args, nil
}

// milliseconds are rounded away from zero: a duration that is set stays so.
func milliseconds(d time.Duration) int64 {
	if r := d % time.Millisecond; r > 0 {
		d += time.Millisecond
	} else if r < 0 {
		d -= time.Millisecond
	}
	return d.Milliseconds()
}

// trim repeats the script until it is done, and returns the names of all groups too.
func trim(ctx context.Context, rdb redis.UniversalClient, stream string, limits []any) (total Trimmed, groups []string, err error) {
	for {
		reply, err := redisrun.Do(ctx, 0, func() (any, error) { return lua.TrimStream.Run(ctx, rdb, []string{stream}, limits...) })
		if err != nil {
			return total, nil, err
		}
		more, step, names, err := readTrimmed(reply)
		if err != nil {
			return total, nil, err
		}
		total.Removed, total.Lost, total.Cleared = total.Removed+step.Removed, total.Lost+step.Lost, total.Cleared+step.Cleared
		total.HeldBack = step.HeldBack
		for _, b := range step.LostBy {
			if !slices.ContainsFunc(total.LostBy, func(o Backlog) bool { return o.Group == b.Group }) {
				total.LostBy = append(total.LostBy, b)
			}
		}
		if !more {
			return total, names, nil
		}
	}
}

func readTrimmed(reply any) (more bool, t Trimmed, groups []string, err error) {
	const head, each = 4, 5
	r := readValues(reply)
	if len(r) < head || (len(r)-head)%each != 0 {
		return false, t, nil, es.Corrupt("the script answers %v", reply)
	}
	t.Removed, t.Lost, t.Cleared = r.number(1), r.number(2), r.number(3)
	for g := r[head:]; len(g) > 0; g = g[each:] {
		b := Backlog{Group: g.text(0), Pending: g.number(1), First: g.text(2)}
		b.Unread, b.UnreadKnown = g[3].(int64)
		groups = append(groups, b.Group)
		switch g.text(4) {
		case "holds":
			t.HeldBack = append(t.HeldBack, b)
		case "loses":
			t.LostBy = append(t.LostBy, b)
		}
	}
	return r.text(0) == "more", t, groups, nil
}
