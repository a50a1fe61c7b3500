package recovery

import (
	"context"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// Retention says for how long dead letters are kept.
type Retention struct {
	// MaxAge is the age above which letters go. Defaults to 30 days.
	MaxAge time.Duration
	// MaxCount is how many letters each topic keeps. Defaults to 100,000.
	MaxCount int64
}

// Expired says how many letters of a topic went for good.
type Expired struct {
	Topic string
	// TooOld and TooMany count what was over MaxAge and over MaxCount.
	TooOld, TooMany int64
}

// Expire removes letters that are over the retention of the topics given, or of all that
// a subscription ever began on, and returns the topics that lost any. Nothing else
// removes letters but [DeadLetters.Discard] and a replay. With an error it returns what
// went until then.
func (d *DeadLetters) Expire(ctx context.Context, r Retention, topics ...string) ([]Expired, error) {
	if r.MaxCount == 0 {
		r.MaxCount = 100_000
	}
	if r.MaxAge < 0 || r.MaxCount < 0 {
		return nil, &es.Error{Op: "expire dead letters", Err: es.Invalid("a limit is negative")}
	}
	topics, err := d.topics(ctx, LetterFilter{Topics: topics})
	if err != nil {
		return nil, &es.Error{Op: "expire dead letters", Err: err}
	}
	var all []Expired
	for _, topic := range topics {
		e, err := d.expire(ctx, topic, ms(r.MaxAge, 30*24*time.Hour), r.MaxCount)
		if e.TooOld+e.TooMany > 0 {
			all = append(all, e)
			_ = es.Tell(ctx, d.Observer, es.LettersExpired{Topic: topic, TooOld: e.TooOld, TooMany: e.TooMany})
		}
		if err != nil {
			return all, &es.Error{Op: "expire dead letters of " + clip(topic), Err: err}
		}
	}
	return all, nil
}

func (d *DeadLetters) expire(ctx context.Context, topic, age string, count int64) (Expired, error) {
	e := Expired{Topic: topic}
	for {
		reply, err := redisrun.Do(ctx, 0, func() (any, error) {
			return lua.ExpireLetters.Run(ctx, d.rdb, []string{rediskey.DeadLetters(topic)}, age, count)
		})
		if err != nil {
			return e, err
		}
		r := readValues(reply)
		e.TooOld, e.TooMany = e.TooOld+r.number(1), e.TooMany+r.number(2)
		if r.text(0) != "more" {
			return e, nil
		}
	}
}
