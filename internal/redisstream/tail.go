package redisstream

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Tail reads a stream to which nobody else listens, without a group, on a connection of its
// own. It is not safe for concurrent use.
type Tail struct {
	connection

	after     string
	untrimmed int // how many were returned and not removed
	read      bool
}

// NewTail reads from the beginning of a stream that may not exist yet. The client is a
// *redis.Client or a *redis.ClusterClient.
func NewTail(rdb redis.UniversalClient, stream string) (*Tail, error) {
	r, err := readingClient(rdb, 1)
	if err != nil {
		return nil, err
	}
	return &Tail{connection: connection{reading: r, topic: stream}, after: "0"}, nil
}

// Close gives the connection back.
func (t *Tail) Close() {
	t.drop()
	t.close()
}

// trimAfter is how many messages are removed at once while more come; else they are removed
// when none does.
const trimAfter = 1000

// Next waits a while, or until ctx is done, for what
// comes after what the last call returned, and removes in time what was returned. It may return nothing. The first call, and the one after an error, do not
// wait, so that the caller soon knows that it can read. After an error all that is there
// comes again: the stream may be another one by then.
func (t *Tail) Next(ctx context.Context, count int64) ([]redis.XMessage, error) {
	messages, err := t.next(ctx, count)
	if err != nil {
		t.after, t.read = "0", false
		t.fail(context.WithoutCancel(ctx))
		return nil, err
	}
	t.read = true
	return messages, nil
}

func (t *Tail) next(ctx context.Context, count int64) ([]redis.XMessage, error) {
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	if t.untrimmed >= trimAfter {
		if err := t.trim(ctx); err != nil {
			return nil, err
		}
	}
	args := &redis.XReadArgs{Streams: []string{t.topic, t.after}, Count: count, Block: -1}
	if t.read {
		args.Block = t.block
		if t.id != 0 {
			args.Block = longBlock
			defer t.unblockAtEnd(ctx)()
		}
	}
	streams, err := t.conn.XRead(context.WithoutCancel(ctx), args).Result()
	if errors.Is(err, redis.Nil) {
		return nil, t.trim(ctx)
	}
	if err != nil {
		return nil, err
	}
	var messages []redis.XMessage
	for _, s := range streams {
		messages = slices.Concat(messages, s.Messages)
	}
	if n := len(messages); n > 0 {
		t.after = messages[n-1].ID
		t.untrimmed += n
	}
	return messages, nil
}

// trim removes what has been returned but the last, which stays until it expires.
func (t *Tail) trim(ctx context.Context) error {
	if t.untrimmed == 0 {
		return nil
	}
	if err := t.conn.XTrimMinID(context.WithoutCancel(ctx), t.topic, t.after).Err(); err != nil {
		return err
	}
	t.untrimmed = 0
	return nil
}
