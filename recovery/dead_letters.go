package recovery

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// ErrNoGroup says that the group that a letter is of does not exist any more.
var ErrNoGroup = fmt.Errorf("%w: group of the dead letter", es.ErrNotFound)

// DeadLetters are the messages that groups could not handle, of all topics. It is safe
// for concurrent use.
type DeadLetters struct {
	// Observer is told of each [es.Replayed] and [es.LettersExpired]; a panic of it is
	// swallowed. It is set before the first call. Defaults to none.
	Observer es.Observer

	rdb redis.UniversalClient
}

// NewDeadLetters reads and moves the dead letters in rdb.
func NewDeadLetters(rdb redis.UniversalClient) *DeadLetters { return &DeadLetters{rdb: rdb} }

// LetterFilter says which letters are meant: those that fit every field that is set.
type LetterFilter struct {
	// Topics defaults to all that a subscription ever began on; see [Register].
	Topics []string
	Group  string
	Reason Reason
	// Aggregate is an aggregate's id, as letters hold it.
	Aggregate string
	// Function is the name of one of a group's functions.
	Function string
}

func (f LetterFilter) fits(l *Letter) bool {
	return (f.Group == "" || f.Group == l.Group) && (f.Reason == "" || f.Reason == l.Reason) &&
		(f.Aggregate == "" || f.Aggregate == l.Aggregate) && (f.Function == "" || f.Function == l.Function.Name)
}

// List yields letters, the newest first, page by page. It begins after the letter given,
// of which Topic and ID count: the last one of the page before; Letter{} = the newest. A
// letter whose message cannot be taken apart has no Fields; [DeadLetters.Get] says why.
func (d *DeadLetters) List(ctx context.Context, f LetterFilter, after Letter) iter.Seq2[Letter, error] {
	return d.walk(ctx, "list dead letters", f, func(topics []string) (*walk, error) {
		return newWalk(d.rdb, topics, true, after)
	})
}

// walk yields what fits f of the walk that begin makes.
func (d *DeadLetters) walk(ctx context.Context, op string, f LetterFilter, begin func(topics []string) (*walk, error)) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		topics, err := d.topics(ctx, f)
		var w *walk
		if err == nil {
			w, err = begin(topics)
		}
		for err == nil {
			var l Letter
			var ok bool
			if l, ok, err = w.next(ctx); err == nil && !ok {
				return
			}
			if err == nil && f.fits(&l) && !yield(l, nil) {
				return
			}
		}
		yield(Letter{}, &es.Error{Op: op, Err: err})
	}
}

// topics are those that a filter means.
func (d *DeadLetters) topics(ctx context.Context, f LetterFilter) ([]string, error) {
	if len(f.Topics) == 0 {
		return Topics(ctx, d.rdb)
	}
	for _, topic := range f.Topics {
		if err := checkTopic(topic); err != nil {
			return nil, err
		}
	}
	return f.Topics, nil
}

// Get is one letter. One that is not there is an [es.ErrNotFound]; one whose message
// cannot be taken apart is an [es.ErrCorrupt], and returned without Fields.
func (d *DeadLetters) Get(ctx context.Context, topic, id string) (Letter, error) {
	l, err := d.get(ctx, topic, id)
	if err != nil {
		return l, letterError("get", topic, id, err)
	}
	return l, nil
}

func (d *DeadLetters) get(ctx context.Context, topic, id string) (Letter, error) {
	if err := checkTopic(topic); err != nil {
		return Letter{}, err
	}
	if _, err := parseID(id); err != nil {
		return Letter{}, err
	}
	entries, err := readEntries(ctx, d.rdb, "XRANGE", rediskey.DeadLetters(topic), id, id, 1)
	if err == nil && len(entries) == 0 {
		err = es.ErrNotFound
	}
	if err != nil {
		return Letter{}, err
	}
	return readLetter(topic, entries[0].id, entries[0].fields)
}

func letterError(op, topic, id string, err error) error {
	return &es.Error{Op: op + " dead letter " + clip(id) + " of " + clip(topic), Err: err}
}

// Count counts the letters that fit. It reads no letter where only topics are asked for.
func (d *DeadLetters) Count(ctx context.Context, f LetterFilter) (n int64, err error) {
	if f.Group != "" || f.Reason != "" || f.Aggregate != "" || f.Function != "" {
		for _, err := range d.List(ctx, f, Letter{}) {
			if err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	}
	topics, err := d.topics(ctx, f)
	for _, topic := range topics {
		if err == nil {
			var length int64
			length, err = redisrun.Do(ctx, 0, func() (int64, error) { return d.rdb.XLen(ctx, rediskey.DeadLetters(topic)).Result() })
			n += length
		}
	}
	if err != nil {
		return 0, &es.Error{Op: "count dead letters", Err: err}
	}
	return n, nil
}

// Oldest is the oldest letter that fits, and for how long it has been one, by the clock
// of Redis. Where there is none it is an [es.ErrNotFound].
func (d *DeadLetters) Oldest(ctx context.Context, f LetterFilter) (Letter, time.Duration, error) {
	const op = "find oldest dead letter"
	for l, err := range d.oldestFirst(ctx, op, f, nil) {
		if err != nil {
			return Letter{}, 0, err
		}
		now, err := redisrun.Do(ctx, 0, func() (time.Time, error) { return d.rdb.Time(ctx).Result() })
		if err != nil {
			return Letter{}, 0, &es.Error{Op: op, Err: err}
		}
		id, err := parseID(l.ID)
		return l, max(0, now.Sub(time.UnixMilli(int64(id.ms)))), err
	}
	return Letter{}, 0, &es.Error{Op: op, Err: es.ErrNotFound}
}

// oldestFirst yields what fits up to the id that is given for each topic, or all of it.
func (d *DeadLetters) oldestFirst(ctx context.Context, op string, f LetterFilter, upTo map[string]string) iter.Seq2[Letter, error] {
	return d.walk(ctx, op, f, func(topics []string) (*walk, error) {
		w, err := newWalk(d.rdb, topics, false, Letter{})
		for _, s := range w.sources {
			if id, ok := upTo[s.topic]; ok {
				s.to = id
			}
		}
		return w, err
	})
}

// Discard removes letters for good, and returns how many of them there were.
func (d *DeadLetters) Discard(ctx context.Context, topic string, ids ...string) (int64, error) {
	err := checkTopic(topic)
	for _, id := range ids {
		if err == nil {
			_, err = parseID(id)
		}
	}
	var n int64
	if err == nil && len(ids) > 0 {
		n, err = redisrun.Do(ctx, 0, func() (int64, error) { return d.rdb.XDel(ctx, rediskey.DeadLetters(topic), ids...).Result() })
	}
	if err != nil {
		return 0, &es.Error{Op: "discard dead letters of " + clip(topic), Err: err}
	}
	return n, nil
}
