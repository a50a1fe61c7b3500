// Package redisrun runs a script or a command, waits out what passes by itself, and
// says in the words of es what an error of the server or of the connection means.
package redisrun

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
)

// DefaultPatience is how long a server may be loading, moving a slot, electing a
// master or running somebody's long script before the caller hears of it.
const DefaultPatience = 5 * time.Second

// Do calls f until it answers with anything but a passing trouble of the server, for
// patience at most (0 = [DefaultPatience]), and explains its error. f must be safe to
// repeat. [redis.Nil] is passed on as it is, and so is the error of a context that is
// done already.
func Do[T any](ctx context.Context, patience time.Duration, f func() (T, error)) (T, error) {
	if err := ctx.Err(); err != nil { // nothing was sent
		var none T
		return none, err
	}
	reply, err := f()
	if err == nil {
		return reply, nil
	}
	if passing(err) {
		if patience == 0 {
			patience = DefaultPatience
		}
		b := backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(10*time.Millisecond),
			backoff.WithMaxInterval(500*time.Millisecond),
			backoff.WithMaxElapsedTime(patience))
		_ = backoff.Retry(func() error {
			if reply, err = f(); err != nil && !passing(err) {
				return backoff.Permanent(err)
			}
			return err
		}, backoff.WithContext(b, ctx)) // what f said last tells more than a context's end
	}
	return reply, Explain(err)
}

// Explain gives an error of go-redis its kind: [es.ErrUnavailable], [es.ErrOutOfMemory],
// [es.ErrCorrupt] for a key of the wrong type, and [es.ErrUncertain] where no reply
// came. Server errors are told apart by their first word, as Redis's protocol has it.
func Explain(err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return err
	}
	switch Word(err) {
	case "OOM":
		return fmt.Errorf("%w: %w", es.ErrOutOfMemory, err)
	case "READONLY", "LOADING", "NOREPLICAS", "MISCONF", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "MOVED", "ASK":
		return fmt.Errorf("%w: %w", es.ErrUnavailable, err)
	case "WRONGTYPE":
		return es.Corrupt("a key of another type stands in the way: %w", err)
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		return err
	}
	if unsent(err) {
		return fmt.Errorf("%w: %w", es.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", es.ErrUncertain, err)
}

// passing reports a refusal that the server will take back by itself: nothing was
// done, and the same call succeeds once the server is through.
func passing(err error) bool {
	switch Word(err) {
	case "LOADING", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "READONLY", "MOVED", "ASK":
		return true
	}
	return unsent(err)
}

// unsent reports that no connection came about, as while a server restarts or a master
// is elected: so nothing was sent.
func unsent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

// Word is the first word of a server's error, "" for an error of another kind: it alone
// tells what the error is (Redis protocol specification, "Simple errors").
func Word(err error) string {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return ""
	}
	w, _, _ := strings.Cut(withoutPlace(reply.Error()), " ")
	return w
}

// withoutPlace takes off the place in the script that Redis 6.2 puts before an error
// that redis.pcall has returned: "@user_script: 20: -OOM command not allowed".
func withoutPlace(text string) string {
	if place, ok := strings.CutPrefix(text, "@user_script: "); ok {
		if _, text, ok := strings.Cut(place, ": -"); ok {
			return text
		}
	}
	return text
}
