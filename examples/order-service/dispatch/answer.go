// Package dispatch has the commands of one process carried out by any number of others:
// a [Desk] sends them over the command bus and hears what became of each, a [Worker]
// carries them out, publishes the events, and answers.
//
// An answer is an entry of the desk's own stream, which the command names in its header.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/replay"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// headerReplyTo names the stream that the answer to a command goes to.
const headerReplyTo = "reply_to"

// maxAnswers is far more than a desk ever has to read: it has that many questions at most.
const maxAnswers = 1 << 14

// The kinds of answers.
const (
	kindDone      = "done"
	kindDuplicate = "duplicate"
	kindRefused   = "refused"
	kindFailed    = "failed"
)

// answer is what became of a command.
type answer struct {
	command string // its id
	kind    string
	version int
	reason  string // of a refusal or a failure
}

func answerTo(c *es.Command, result es.Result, err error) answer {
	a := answer{command: c.ID, kind: kindDone, version: result.Version}
	switch {
	case errors.Is(err, es.ErrRefused):
		a.kind, a.reason = kindRefused, replay.Reason(err)
	case err != nil:
		a.kind, a.reason = kindFailed, err.Error()
	case result.Duplicate:
		a.kind = kindDuplicate
	}
	return a
}

// result is the answer as a handler would have given it.
func (a answer) result(id es.AggregateID) (es.Result, error) {
	result := es.Result{Aggregate: id, Version: a.version, Duplicate: a.kind == kindDuplicate}
	switch a.kind {
	case kindDone, kindDuplicate:
		return result, nil
	case kindRefused:
		return result, es.Refuse(errors.New(a.reason))
	}
	return result, fmt.Errorf("a worker gave up: %s", a.reason)
}

// send adds the answer to a desk's stream. Where the desk is gone nobody waits for it.
func (a answer) send(ctx context.Context, rdb redis.Cmdable, stream string) error {
	_, err := redisrun.Do(ctx, 0, func() (string, error) {
		return rdb.XAdd(ctx, &redis.XAddArgs{
			Stream: stream, NoMkStream: true, MaxLen: maxAnswers, Approx: true,
			Values: []any{"command", a.command, "kind", a.kind, "version", a.version, "reason", a.reason},
		}).Result()
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("answer command %s: %w", a.command, err)
	}
	return nil
}

func readAnswer(values map[string]any) answer {
	text := func(name string) string { s, _ := values[name].(string); return s }
	version, _ := strconv.Atoi(text("version")) // a refusal's is not looked at
	return answer{text("command"), text("kind"), version, text("reason")}
}
