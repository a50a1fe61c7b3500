package inspect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// Stream is one topic.
type Stream struct {
	Topic       string `json:"topic"`
	Length      int64  `json:"length"`
	First       string `json:"first,omitempty"` // ids of entries
	Last        string `json:"last,omitempty"`
	Added       int64  `json:"added"` // ever; 0 = not known
	Groups      int64  `json:"groups"`
	Bytes       int64  `json:"bytes"` // 0 = not known
	DeadLetters int64  `json:"dead_letters"`
}

// ReadStream reads one topic; one that has no stream yet is empty.
func ReadStream(ctx context.Context, rdb redis.UniversalClient, topic string) (Stream, error) {
	s := Stream{Topic: topic}
	info, err := redisrun.Do(ctx, 0, func() (*redis.XInfoStream, error) { return rdb.XInfoStream(ctx, topic).Result() })
	if err != nil && !Absent(err) {
		return s, fmt.Errorf("stream %q: %w", topic, err)
	}
	if err == nil {
		s.Length, s.Groups, s.First, s.Last, s.Added = info.Length, info.Groups, info.FirstEntry.ID, info.LastEntry.ID, info.EntriesAdded
		if s.Bytes, err = rdb.MemoryUsage(ctx, topic).Result(); err != nil {
			s.Bytes = 0 // not known
		}
	}
	s.DeadLetters, err = redisrun.Do(ctx, 0, func() (int64, error) { return rdb.XLen(ctx, rediskey.DeadLetters(topic)).Result() })
	return s, err
}

// Absent says that an error is the one for a key that does not exist.
func Absent(err error) bool { return err != nil && strings.Contains(err.Error(), "no such key") }

// EntryTime is when an entry was written, by its id.
func EntryTime(id string) time.Time {
	text, _, _ := strings.Cut(id, "-")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Group is one group of a topic.
type Group struct {
	Topic string `json:"topic"`
	Name  string `json:"group"`
	// Unread counts what no consumer has read; nil = Redis does not know.
	Unread  *int64 `json:"lag"`
	Pending int64  `json:"pending"`
	// Delivered is the id of the last entry that some consumer has read.
	Delivered string `json:"delivered"`
	// Oldest is the id of the oldest entry that is pending, and OldestMS its age.
	Oldest    string     `json:"oldest,omitempty"`
	OldestMS  int64      `json:"oldest_ms"`
	Failing   int64      `json:"failing"` // entries that failed and are tried again
	Retry     int64      `json:"retry"`   // entries of the retry stream
	Consumers []Consumer `json:"consumers"`
}

// Consumer is one consumer of a group.
type Consumer struct {
	Name    string `json:"consumer"`
	Pending int64  `json:"pending"`
	IdleMS  int64  `json:"idle_ms"`
	// Lease is "held", "passed", "left", "kotlin" for Wow's own, or "none".
	Lease string `json:"lease"`
	// LeaseMS is until the deadline, negative since it passed.
	LeaseMS int64 `json:"lease_ms"`
}

// Live counts the consumers that are known to be alive.
func (g *Group) Live() (n int) {
	for _, c := range g.Consumers {
		if c.Lease == "held" || c.Lease == "kotlin" {
			n++
		}
	}
	return n
}

// ReadGroups reads the groups of one topic.
func ReadGroups(ctx context.Context, rdb redis.UniversalClient, topic string) ([]Group, error) {
	infos, err := redisrun.Do(ctx, 0, func() ([]redis.XInfoGroup, error) { return rdb.XInfoGroups(ctx, topic).Result() })
	if Absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("stream %q: %w", topic, err)
	}
	groups := make([]Group, 0, len(infos))
	for _, info := range infos {
		g, err := readGroup(ctx, rdb, topic, info)
		if err != nil {
			return nil, fmt.Errorf("group %q of %q: %w", info.Name, topic, err)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func readGroup(ctx context.Context, rdb redis.UniversalClient, topic string, info redis.XInfoGroup) (Group, error) {
	g := Group{Topic: topic, Name: info.Name, Pending: info.Pending, Delivered: info.LastDeliveredID, Consumers: []Consumer{}}
	var now *redis.TimeCmd
	var pending *redis.XPendingCmd
	var consumers *redis.XInfoConsumersCmd
	var leases *redis.ZSliceCmd
	var failing, retry, length *redis.IntCmd
	_, err := redisrun.Do(ctx, 0, func() ([]redis.Cmder, error) {
		return rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			now, pending, consumers = p.Time(ctx), p.XPending(ctx, topic, info.Name), p.XInfoConsumers(ctx, topic, info.Name)
			leases = p.ZRangeWithScores(ctx, rediskey.Leases(topic, info.Name), 0, 9_999)
			failing, retry = p.HLen(ctx, rediskey.Failed(topic, info.Name)), p.XLen(ctx, rediskey.Retry(topic, info.Name))
			length = p.XLen(ctx, topic)
			return nil
		})
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return g, err
	}
	g.Failing, g.Retry = failing.Val(), retry.Val()
	g.Unread = unread(info, length.Val())
	if p := pending.Val(); p != nil && p.Count > 0 {
		g.Oldest, g.OldestMS = p.Lower, now.Val().Sub(EntryTime(p.Lower)).Milliseconds()
	}
	deadlines := map[string]float64{}
	for _, z := range leases.Val() {
		name, _ := z.Member.(string)
		deadlines[name] = z.Score
	}
	for _, c := range consumers.Val() {
		one := Consumer{Name: c.Name, Pending: c.Pending, IdleMS: c.Idle.Milliseconds()}
		deadline, known := deadlines[c.Name]
		one.LeaseMS = int64(deadline) - now.Val().UnixMilli()
		switch {
		case known && deadline == 0:
			one.Lease, one.LeaseMS = "left", 0
		case known && one.LeaseMS > 0:
			one.Lease = "held"
		case known:
			one.Lease = "passed"
		default:
			if one.Lease, err = kotlinLease(ctx, rdb, topic, info.Name, c.Name); err != nil {
				return g, err
			}
			one.LeaseMS = 0
		}
		g.Consumers = append(g.Consumers, one)
	}
	return g, nil
}

// kotlinLease is of a consumer that has no deadline among ours.
func kotlinLease(ctx context.Context, rdb redis.UniversalClient, topic, group, consumer string) (string, error) {
	n, err := redisrun.Do(ctx, 0, func() (int64, error) { return rdb.Exists(ctx, rediskey.WowLease(topic, group, consumer)).Result() })
	if n > 0 {
		return "kotlin", err
	}
	return "none", err
}

// unread is nil where Redis does not know: entries were deleted, or it is older than 7.0
// and counts nothing.
func unread(info redis.XInfoGroup, length int64) *int64 {
	n := info.Lag
	switch {
	case info.LastDeliveredID == "0-0":
		n = length
	case n < 0, n == 0 && info.EntriesRead == 0 && length > 0:
		return nil
	}
	return &n
}

// IdleOf is for how long a pending entry was not delivered again; 0 where it is pending no more.
func IdleOf(ctx context.Context, rdb redis.UniversalClient, topic, group, entry string) (time.Duration, error) {
	found, err := redisrun.Do(ctx, 0, func() ([]redis.XPendingExt, error) {
		return rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: topic, Group: group, Start: entry, End: entry, Count: 1}).Result()
	})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0].Idle, nil
}
