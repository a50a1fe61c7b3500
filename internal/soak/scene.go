package soak

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/recovery"
)

// Backlog is how much all groups have yet to read, and to acknowledge; where is what has
// something left, for people to read.
func Backlog(ctx context.Context, rdb redis.UniversalClient) (unread, pending int64, where []string, err error) {
	for topic, groups := range Groups() {
		for _, group := range groups {
			for _, stream := range []string{topic, rediskey.Retry(topic, group)} {
				var g redis.XInfoGroup
				if g, err = groupOf(ctx, rdb, stream, group); err != nil {
					return 0, 0, nil, err
				}
				unread, pending = unread+g.Lag, pending+g.Pending
				if g.Lag != 0 || g.Pending != 0 {
					where = append(where, fmt.Sprintf("%s %s: %d unread, %d pending", stream, group, g.Lag, g.Pending))
				}
			}
		}
	}
	return unread, pending, where, nil
}

func groupOf(ctx context.Context, rdb redis.UniversalClient, stream, group string) (redis.XInfoGroup, error) {
	groups, err := rdb.XInfoGroups(ctx, stream).Result()
	if err != nil {
		return redis.XInfoGroup{}, err
	}
	for _, g := range groups {
		if g.Name != group {
			continue
		}
		// The lag of Redis 7.0 is not replicated: after a failover the ids alone tell.
		info, err := rdb.XInfoStream(ctx, stream).Result()
		if err != nil {
			return g, err
		}
		if g.Lag = max(g.Lag, 1); info.LastGeneratedID == g.LastDeliveredID {
			g.Lag = 0
		}
		return g, nil
	}
	return redis.XInfoGroup{}, fmt.Errorf("%s has no group %s", stream, group)
}

// Streams are all entries of all topics.
func Streams(ctx context.Context, rdb redis.UniversalClient) (map[string][]Entry, error) {
	codec, streams := Codec(), map[string][]Entry{}
	for topic := range Groups() {
		for start := "-"; ; {
			page, err := rdb.XRangeN(ctx, topic, start, "+", 1000).Result()
			if err != nil {
				return nil, err
			}
			for _, m := range page {
				data, ok := m.Values[redisstream.Field].(string)
				entry := Entry{ID: m.ID, Undecodable: !ok}
				if ok {
					entry.N, entry.Aggregate, err = Open(codec, topic, []byte(data))
					entry.Undecodable = err != nil
				}
				streams[topic] = append(streams[topic], entry)
			}
			if len(page) < 1000 {
				break
			}
			start = "(" + page[len(page)-1].ID
		}
	}
	return streams, nil
}

// Letters are all dead letters.
func Letters(ctx context.Context, rdb redis.UniversalClient) (letters []recovery.Letter, err error) {
	for l, err := range recovery.NewDeadLetters(rdb).List(ctx, recovery.LetterFilter{}, recovery.Letter{}) {
		if err != nil {
			return nil, err
		}
		letters = append(letters, l)
	}
	return letters, nil
}

// Orphans reaps the consumers of all groups, none of which lives any more, and returns
// what is left of them.
func Orphans(ctx context.Context, rdb redis.UniversalClient) (reaped int, left []string, err error) {
	for topic, groups := range Groups() {
		r, err := recovery.Reap(ctx, rdb, topic, recovery.ReapOptions{DeadFor: time.Millisecond})
		if err != nil {
			return reaped, nil, err
		}
		reaped += len(r.Consumers)
		for _, group := range groups {
			for _, stream := range []string{topic, rediskey.Retry(topic, group)} {
				consumers, err := rdb.XInfoConsumers(ctx, stream, group).Result()
				if err != nil {
					return reaped, nil, err
				}
				for _, c := range consumers {
					left = append(left, fmt.Sprintf("%s %s: consumer %s with %d pending", stream, group, c.Name, c.Pending))
				}
			}
			leases, err := rdb.ZRange(ctx, rediskey.Leases(topic, group), 0, -1).Result()
			if err != nil {
				return reaped, nil, err
			}
			failures, err := rdb.HKeys(ctx, rediskey.Failed(topic, group)).Result()
			if err != nil {
				return reaped, nil, err
			}
			if len(leases)+len(failures) > 0 {
				left = append(left, fmt.Sprintf("%s %s: leases of %s, failures of %s", topic, group, strings.Join(leases, " "), strings.Join(failures, " ")))
			}
		}
	}
	return reaped, left, nil
}
