package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
)

const (
	// keep is how long the stream of answers outlives a desk that was killed.
	keep = 10 * time.Minute
	// patience is how long answers may be unreadable before the desk closes.
	patience = 5 * time.Second
	// look is the longest that a read of answers blocks, and a closing desk with it.
	look = 100 * time.Millisecond
)

// Desk sends commands and waits for the answers. It is safe for concurrent use.
type Desk struct {
	rdb    redis.UniversalClient
	sender es.CommandSender
	newID  func() string
	stream string

	mu      sync.Mutex
	waiting map[string]chan answer // by command id
}

// NewDesk is a desk that sends through sender and reads its answers through rdb, on one
// connection that blocks.
func NewDesk(rdb redis.UniversalClient, sender es.CommandSender) *Desk {
	newID := es.NewRandomIDs()
	return &Desk{rdb: rdb, sender: sender, newID: newID, stream: "order-service:answers:" + newID(), waiting: map[string]chan answer{}}
}

// Open makes the stream of answers: until then, and after Close, workers drop them.
func (d *Desk) Open(ctx context.Context) error {
	_, err := redisrun.Do(ctx, 0, func() ([]redis.Cmder, error) {
		return d.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.XAdd(ctx, &redis.XAddArgs{Stream: d.stream, Values: []any{"command", ""}})
			p.Expire(ctx, d.stream, keep)
			return nil
		})
	})
	return err
}

// Close removes the stream of answers.
func (d *Desk) Close(ctx context.Context) error {
	_, err := redisrun.Do(ctx, 0, func() (int64, error) { return d.rdb.Del(ctx, d.stream).Result() })
	return err
}

// Ask is an [es.CommandHandler] that has somebody else carry the command out: it sends
// it and waits for the answer, for as long as ctx and [Desk.Listen] allow. A refusal is
// an [es.ErrRefused] with the aggregate's own text.
//
// Duplicate means that a command of another id was carried out for the same request id.
// A worker that died on the way does not make a duplicate of what it had done.
func (d *Desk) Ask(ctx context.Context, c es.Command) (es.Result, error) {
	c.Complete(d.newID, time.Now())
	c.Header.Set(headerReplyTo, d.stream)
	answered := make(chan answer, 1)
	d.expect(c.ID, answered)
	defer d.expect(c.ID, nil)
	if err := d.sender.Send(ctx, c); err != nil {
		return es.Result{}, err
	}
	select {
	case a := <-answered:
		return a.result(c.Aggregate)
	case <-ctx.Done():
		return es.Result{}, context.Cause(ctx)
	}
}

func (d *Desk) expect(command string, answered chan answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if answered == nil {
		delete(d.waiting, command)
		return
	}
	d.waiting[command] = answered
}

// hear gives the answer to who waits for it. Answers to redelivered commands come again.
func (d *Desk) hear(a answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if answered, ok := d.waiting[a.command]; ok {
		answered <- a
		delete(d.waiting, a.command)
	}
}

// Listen hands the answers to those who wait for them until ctx is done, then returns
// nil. It fails where they cannot be read for some seconds.
func (d *Desk) Listen(ctx context.Context) error {
	last, read, kept := "0", time.Now(), time.Now()
	for ctx.Err() == nil {
		streams, err := d.rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{d.stream, last}, Count: 1000, Block: look}).Result()
		for _, s := range streams {
			for _, m := range s.Messages {
				last = m.ID
				d.hear(readAnswer(m.Values))
			}
		}
		switch {
		case err == nil:
			read = time.Now()
			_ = d.rdb.XTrimMinID(ctx, d.stream, last).Err() // else the next one does
		case errors.Is(err, redis.Nil):
			read = time.Now()
		case time.Since(read) > patience && ctx.Err() == nil:
			return fmt.Errorf("read answers: %w", redisrun.Explain(err))
		default:
			pause(ctx, look)
		}
		if time.Since(kept) > keep/10 {
			kept = time.Now()
			_ = d.rdb.Expire(ctx, d.stream, keep).Err() // there are nine more chances
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
