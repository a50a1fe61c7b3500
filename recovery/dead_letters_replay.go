package recovery

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// Replay moves a letter to the retry stream of its group, which no other group reads,
// in one step, and returns its id there. A letter that is not there (any more) is an
// [es.ErrNotFound], one whose group is gone from the topic an [ErrNoGroup]: it stays.
// Where the reply to a first try was lost, the second finds the letter moved already: so
// an [es.ErrNotFound] of a letter just seen means that it was replayed or discarded.
func (d *DeadLetters) Replay(ctx context.Context, topic, id string) (retry string, err error) {
	l, err := d.get(ctx, topic, id)
	if err == nil || errors.Is(err, es.ErrCorrupt) && l.Group != "" {
		retry, err = d.replay(ctx, &l, nil)
	}
	if err != nil {
		return "", letterError("replay", topic, id, err)
	}
	return retry, nil
}

// ReplayAs replays a letter like [DeadLetters.Replay], with other fields than its own.
func (d *DeadLetters) ReplayAs(ctx context.Context, l Letter, fields Fields) (retry string, err error) {
	err = checkTopic(l.Topic)
	if err == nil {
		_, err = parseID(l.ID)
	}
	if err == nil && (len(fields) == 0 || len(fields)%2 != 0) {
		err = es.Invalid("%d texts are no fields with values", len(fields))
	}
	if err == nil {
		retry, err = d.replay(ctx, &l, wrap(fields))
	}
	if err != nil {
		return "", letterError("replay", l.Topic, l.ID, err)
	}
	return retry, nil
}

// replay replays a letter with its own fields, or with those that are given, wrapped.
func (d *DeadLetters) replay(ctx context.Context, l *Letter, fields Fields) (retry string, err error) {
	args := []any{l.ID, l.Group}
	for _, text := range fields {
		args = append(args, text)
	}
	keys := []string{rediskey.DeadLetters(l.Topic), rediskey.Retry(l.Topic, l.Group), l.Topic}
	reply, err := redisrun.Do(ctx, 0, func() (any, error) { return lua.ReplayLetter.Run(ctx, d.rdb, keys, args...) })
	if err != nil {
		return "", err
	}
	switch r := readValues(reply); r.text(0) {
	case "replayed":
		_ = es.Tell(ctx, d.Observer, es.Replayed{Topic: l.Topic, Group: l.Group, Letter: l.ID})
		return r.text(1), nil
	case "group":
		return "", ErrNoGroup
	default:
		return "", es.ErrNotFound
	}
}

// Replayed is what became of one letter in [DeadLetters.ReplayMany].
type Replayed struct {
	Letter Letter
	// Retry is its id in the retry stream.
	Retry string
	// Err is why it was not replayed: an [ErrNoGroup], or an [es.ErrNotFound] where
	// somebody else has replayed or discarded it.
	Err error
}

// ReplayMany replays the letters that fit, the oldest first, each in one step, and
// yields what became of each; so whoever counts them knows the progress, and may stop at
// any time. It replays perSecond letters a second at most; 0 = as fast as it goes.
// Letters that are written after it began, among them those that fail again, are not
// replayed. The first error of the server ends it, as the context's end does; the same
// call again goes on.
func (d *DeadLetters) ReplayMany(ctx context.Context, f LetterFilter, perSecond float64) iter.Seq2[Replayed, error] {
	const op = "replay dead letters"
	return func(yield func(Replayed, error) bool) {
		var err error
		if perSecond < 0 || math.IsNaN(perSecond) || math.IsInf(perSecond, 0) {
			err = es.Invalid("%v letters a second is no rate", perSecond)
		}
		var newest map[string]string
		if err == nil {
			f.Topics, newest, err = d.newest(ctx, f)
		}
		if err != nil {
			yield(Replayed{}, &es.Error{Op: op, Err: err})
			return
		}
		if len(f.Topics) == 0 {
			return
		}
		begin, n := time.Now(), 0
		for l, err := range d.oldestFirst(ctx, op, f, newest) {
			if err != nil {
				yield(Replayed{}, err)
				return
			}
			if err = ctx.Err(); err == nil && perSecond > 0 {
				err = waitUntil(ctx, begin.Add(time.Duration(float64(n)/perSecond*float64(time.Second))))
			}
			r := Replayed{Letter: l}
			if err == nil {
				r.Retry, err = d.replay(ctx, &l, nil)
			}
			if errors.Is(err, es.ErrNotFound) {
				r.Err, err = err, nil
			}
			if err != nil {
				yield(Replayed{}, letterError("replay", l.Topic, l.ID, err))
				return
			}
			if n++; !yield(r, nil) {
				return
			}
		}
	}
}

// newest are the topics that have letters which f may mean, and the id of the newest of each.
func (d *DeadLetters) newest(ctx context.Context, f LetterFilter) (topics []string, newest map[string]string, err error) {
	all, err := d.topics(ctx, f)
	newest = map[string]string{}
	for _, topic := range all {
		if err != nil {
			return nil, nil, err
		}
		var last []entry
		if last, err = readEntries(ctx, d.rdb, "XREVRANGE", rediskey.DeadLetters(topic), "+", "-", 1); len(last) > 0 {
			topics = append(topics, topic)
			newest[topic] = last[0].id
		}
	}
	return topics, newest, err
}

func waitUntil(ctx context.Context, at time.Time) error {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
