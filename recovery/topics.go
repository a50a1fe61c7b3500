package recovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// Register adds topics to the index through which dead letters are found. A
// subscription calls it when it starts; a topic stays in the index for good.
func Register(ctx context.Context, rdb redis.UniversalClient, topics ...string) error {
	if len(topics) == 0 {
		return nil
	}
	members := make([]any, len(topics))
	for i, topic := range topics {
		if err := checkTopic(topic); err != nil {
			return err
		}
		members[i] = topic
	}
	_, err := redisrun.Do(ctx, 0, func() (int64, error) { return rdb.SAdd(ctx, rediskey.Topics(), members...).Result() })
	if err != nil {
		return &es.Error{Op: "register topics", Err: err}
	}
	return nil
}

// Topics are all that were registered, sorted.
func Topics(ctx context.Context, rdb redis.UniversalClient) ([]string, error) {
	topics, err := redisrun.Do(ctx, 0, func() ([]string, error) { return rdb.SMembers(ctx, rediskey.Topics()).Result() })
	if err != nil {
		return nil, &es.Error{Op: "read topics", Err: err}
	}
	slices.Sort(topics)
	return topics, nil
}

// checkTopic refuses names whose keys would not share a slot.
func checkTopic(topic string) error {
	switch {
	case strings.TrimSpace(topic) == "":
		return es.Invalid("topic is blank")
	case len(topic) > es.MaxIDBytes:
		return fmt.Errorf("%w: %w: topic has %d bytes, more than %d", es.ErrInvalid, es.ErrTooLarge, len(topic), es.MaxIDBytes)
	case !utf8.ValidString(topic):
		return es.Invalid("topic %q is not valid UTF-8", topic)
	case strings.ContainsAny(topic, "{}"):
		return es.Invalid("topic %q holds a brace", topic)
	}
	return nil
}

// clip keeps a text that is over its limit, or more than one line, out of the logs.
func clip(text string) string {
	if len(text) > es.MaxIDBytes {
		text = text[:64] + "…"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == utf8.RuneError || r == 0x7f }) {
		return fmt.Sprintf("%q", text)
	}
	return text
}
