package redisstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// Prepare makes the groups of a subscription where they do not exist yet, so that
// nothing sent from then on is missed. It may be called any number of times, by any
// number of processes. Without a Start, a new group on a stream that has entries is an
// [es.ErrStartRequired].
func Prepare(ctx context.Context, rdb redis.UniversalClient, c Config) error {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	rdb, done := masters(rdb)
	defer done()
	for _, topic := range c.Topics {
		if err := prepare(ctx, rdb, topic, c.Group, c.Start); err != nil {
			return fmt.Errorf("prepare group %q of %q: %w", c.Group, topic, err)
		}
	}
	return nil
}

func prepare(ctx context.Context, rdb redis.UniversalClient, topic, group string, start es.Start) error {
	if start == "" {
		var err error
		if start, err = undecided(ctx, rdb, topic, group); err != nil {
			return err
		}
	}
	if err := createGroup(ctx, rdb, topic, group, string(start)); err != nil {
		return err
	}
	// What is replayed to the group; there is nothing in it that could be skipped.
	return createGroup(ctx, rdb, rediskey.Retry(topic, group), group, string(es.FromBeginning))
}

// undecided is where a group begins that nobody gave a start: on a stream without
// entries there is but one place.
func undecided(ctx context.Context, rdb redis.UniversalClient, topic, group string) (es.Start, error) {
	groups, err := redisrun.Do(ctx, 0, func() ([]redis.XInfoGroup, error) { return rdb.XInfoGroups(ctx, topic).Result() })
	if err != nil && !isNoKey(err) {
		return "", err
	}
	for _, g := range groups {
		if g.Name == group {
			return es.FromBeginning, nil // it exists: the place that it has counts
		}
	}
	entries, err := redisrun.Do(ctx, 0, func() (int64, error) { return rdb.XLen(ctx, topic).Result() })
	if err != nil {
		return "", err
	}
	if entries > 0 {
		return "", fmt.Errorf("%w: the stream has %d entries; set Start to es.FromBeginning or es.FromNow", es.ErrStartRequired, entries)
	}
	return es.FromBeginning, nil
}

// isNoKey reports XINFO's answer for a stream that does not exist.
func isNoKey(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && reply.Error() == "ERR no such key"
}

func createGroup(ctx context.Context, rdb redis.UniversalClient, stream, group, start string) error {
	_, err := redisrun.Do(ctx, 0, func() (string, error) { return rdb.XGroupCreateMkStream(ctx, stream, group, start).Result() })
	if redisrun.Word(err) == "BUSYGROUP" {
		return nil
	}
	return err
}
