package commandbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/internal/redisstream"
)

const (
	// replyLease is how long replies are still kept for a process that fell silent.
	replyLease = 15 * time.Second
	// readAtOnce is how many replies are read in one round trip.
	readAtOnce = 1000
	// maxSignal is the size limit of a signal that is posted.
	maxSignal = 1 << 20
)

// condition is whether replies can be received.
type condition struct {
	mu           sync.Mutex
	leased, read bool
	err          error         // why not
	changed      chan struct{} // closed at each change
}

func (c *condition) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// ready waits until replies can be received, or it is known that they cannot.
func (c *condition) ready(ctx context.Context, needed bool) error {
	for needed {
		c.mu.Lock()
		ready, err, changed := c.leased && c.read, c.err, c.changed
		c.mu.Unlock()
		if ready {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: not sent, since its answer could not be received: %w", es.ErrUnavailable, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: not sent, since its answer could not be received: Gateway.Run has not begun, or Redis does not answer: %w",
				es.ErrUnavailable, context.Cause(ctx))
		}
	}
	return nil
}

// Run receives what other processes answer, on one connection of its own, until ctx is done;
// then it returns nil. For a gateway without Redis there is nothing to receive. One Run at
// a time.
func (g *Gateway) Run(ctx context.Context) error {
	if g.rdb == nil {
		<-ctx.Done()
		return nil
	}
	tail, err := redisstream.NewTail(g.rdb, rediskey.Replies(g.process))
	if err != nil {
		return &es.Error{Op: "receive answers", Err: err}
	}
	defer tail.Close()
	var running sync.WaitGroup
	running.Go(func() { g.keep(ctx) })
	for pause, last, began := time.Duration(0), (time.Time{}), time.Now(); ctx.Err() == nil; {
		messages, err := tail.Next(ctx, readAtOnce)
		if err = redisrun.Explain(err); err != nil {
			passes := errors.Is(err, es.ErrUnavailable) || errors.Is(err, es.ErrUncertain)
			g.replies.set(func() {
				g.replies.read = passes && time.Since(last) < replyLease
				if !passes || time.Since(began) > redisrun.DefaultPatience {
					g.replies.err = err
				}
			})
			pause = min(2*pause+50*time.Millisecond, time.Second)
			wait(ctx, pause)
			continue
		}
		now := time.Now()
		if pause, last, began = 0, now, now; !g.replies.isRead() {
			g.replies.set(func() { g.replies.read, g.replies.err = true, nil })
		}
		for _, m := range messages {
			var s es.Signal
			if text, ok := m.Values[redisstream.Field].(string); ok && s.UnmarshalJSON([]byte(text)) == nil {
				g.hear(s)
			} else {
				g.strays.Add(1)
			}
		}
	}
	running.Wait()
	g.replies.set(func() { g.replies.leased, g.replies.read, g.replies.err = false, false, nil })
	g.leave(context.WithoutCancel(ctx))
	return nil
}

func (c *condition) isRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

// keep says to others, again and again, that this process is alive.
func (g *Gateway) keep(ctx context.Context) {
	key, held := rediskey.ReplyLease(g.process), time.Time{}
	for pause := time.Duration(0); ctx.Err() == nil; wait(ctx, pause) {
		began := time.Now()
		err := g.hold(ctx, key)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if held, pause = began, replyLease/3; !g.replies.isLeased() {
				g.replies.set(func() { g.replies.leased, g.replies.err = true, nil })
			}
		default:
			pause = min(2*pause+50*time.Millisecond, time.Second)
			g.replies.set(func() { g.replies.leased, g.replies.err = time.Since(held) < replyLease, err })
		}
	}
}

func (c *condition) isLeased() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leased
}

// hold takes the lease on, which works while memory is full, or takes it anew.
func (g *Gateway) hold(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, replyLease/3)
	defer cancel()
	there, err := redisrun.Do(ctx, time.Second, func() (bool, error) { return g.rdb.PExpire(ctx, key, replyLease).Result() })
	if err == nil && !there {
		_, err = redisrun.Do(ctx, time.Second, func() (string, error) { return g.rdb.Set(ctx, key, "1", replyLease).Result() })
	}
	return err
}

// leave removes what others would write to.
func (g *Gateway) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := g.rdb.Del(ctx, rediskey.ReplyLease(g.process), rediskey.Replies(g.process)).Err(); err != nil {
		g.log().WarnContext(ctx, "answers are left to expire", "error", err)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Handler takes the signals that Kotlin's nodes post, wherever it is mounted:
// [Gateway].URL says where. It asks nobody who they are.
func (g *Gateway) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSignal))
		var s es.Signal
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		g.hear(s)
	})
}
