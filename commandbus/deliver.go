package commandbus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/lua"
)

const (
	// keepReplies is how long replies are kept that nobody reads.
	keepReplies = time.Minute
	// maxReplies is more than a process that reads leaves unread.
	maxReplies = 100_000
	// patience is how long Redis may be without an answer until letters are dropped.
	patience = 10 * time.Second
	// attempts is how often a signal is posted.
	attempts = 3
)

// deliver brings letters to Redis or posts one. No caller waits.
func (n *Notifier) deliver(to string, letters []letter) {
	if to == "" {
		n.addAll(letters)
		return
	}
	for _, l := range letters {
		if err := n.postSignal(to, l.data); err != nil {
			n.log().Warn("whoever waits could not be told", "endpoint", to, "error", err)
		}
	}
}

// addAll adds replies, those to one process by one script, and all in one round trip.
func (n *Notifier) addAll(letters []letter) {
	replies := map[string][]any{}
	var processes []string
	for _, l := range letters {
		if replies[l.process] == nil {
			processes = append(processes, l.process)
			replies[l.process] = []any{keepReplies.Milliseconds(), maxReplies, redisstream.Field}
		}
		replies[l.process] = append(replies[l.process], l.data)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for known := true; len(processes) > 0; {
		left, err := redisrun.Do(ctx, 0, func() (left []string, err error) {
			left, err = n.add(ctx, known, processes, replies)
			if len(left) < len(processes) {
				processes, err = left, nil // the others are told, so it is not to be repeated for them
			}
			return left, err
		})
		switch {
		case err == nil:
			processes = left
		case known && redisrun.Word(err) == "NOSCRIPT":
			known = false
		default:
			n.log().Warn("processes that wait could not be told", "processes", len(processes), "error", err)
			return
		}
	}
}

// add returns those that could not be told, with one of the errors.
func (n *Notifier) add(ctx context.Context, known bool, processes []string, replies map[string][]any) (left []string, failed error) {
	answers := make([]*redis.Cmd, len(processes))
	_, _ = n.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, process := range processes {
			answers[i] = lua.AddReplies.Queue(ctx, p, known, []string{rediskey.ReplyLease(process), rediskey.Replies(process)}, replies[process]...)
		}
		return nil
	})
	for i, a := range answers {
		if err := a.Err(); err != nil {
			left, failed = append(left, processes[i]), err
		}
	}
	return left, failed
}

// errAnswer is an answer that another attempt would get too.
var errAnswer = errors.New("refused")

// postSignal posts a signal as Kotlin's nodes do.
func (n *Notifier) postSignal(endpoint string, data []byte) (err error) {
	pause := n.Pause
	if pause == 0 {
		pause = 2 * time.Second
	}
	for attempt := range attempts {
		if attempt > 0 {
			time.Sleep(pause)
		}
		if err = n.postOnce(endpoint, data); err == nil || errors.Is(err, errAnswer) {
			return err
		}
	}
	return err
}

var defaultHTTP = &http.Client{Timeout: 5 * time.Second}

func (n *Notifier) postOnce(endpoint string, data []byte) error {
	client := n.HTTP
	if client == nil {
		client = defaultHTTP
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, endpoint, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: %w", errAnswer, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16) // so that the connection can be used again
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return fmt.Errorf("answered %s", response.Status)
	default:
		return fmt.Errorf("%w: %s", errAnswer, response.Status)
	}
}
