package redisstream

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// Field is the one field of an entry, as in Wow.
const Field = "msg"

// MaxBytes is the size limit of one message.
const MaxBytes = 16 << 20

// batch is how many messages one script adds: it holds the server while it runs.
const batch = 32

// Publish adds messages to a topic, in order; the first that cannot be added ends it,
// so that none overtakes another. A reply that is lost and asked for again may add a
// message twice: publishing is at least once.
func Publish(ctx context.Context, rdb redis.Cmdable, topic string, messages ...[]byte) error {
	for i, m := range messages {
		if len(m) > MaxBytes {
			return fmt.Errorf("%w: message %d of %d has %d bytes, more than %d", es.ErrTooLarge, i+1, len(messages), len(m), MaxBytes)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(messages) == 1 {
		_, err := redisrun.Do(ctx, 0, func() (string, error) {
			return rdb.XAdd(ctx, &redis.XAddArgs{Stream: topic, Values: []any{Field, messages[0]}}).Result()
		})
		return err
	}
	for len(messages) > 0 {
		n := min(batch, len(messages))
		args := make([]any, 0, n+1)
		args = append(args, Field)
		for _, m := range messages[:n] {
			args = append(args, m)
		}
		answer, err := redisrun.Do(ctx, 0, func() (any, error) { return lua.PublishMessages.Run(ctx, rdb, []string{topic}, args...) })
		if err != nil {
			return err
		}
		if added, _ := answer.(int64); int(added) != n {
			return fmt.Errorf("%d of %d messages were added: %v", added, n, answer)
		}
		messages = messages[n:]
	}
	return nil
}
