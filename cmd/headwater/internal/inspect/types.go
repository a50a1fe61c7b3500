// Package inspect reads what is there, from indexes and not from scans where there are any.
package inspect

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/recovery"
)

// ParseType reads "context.name", cut at the last dot, or "context/name" where the name
// holds a dot itself. The context is its alias, if it has one.
func ParseType(text string) (es.AggregateType, error) {
	i := strings.IndexByte(text, '/')
	if i < 0 {
		i = strings.LastIndexByte(text, '.')
	}
	if i < 0 {
		return es.AggregateType{}, es.Invalid("aggregate type %q: it is <context>.<name>, such as order-service.order", text)
	}
	t := es.AggregateType{Context: text[:i], Name: text[i+1:]}
	return t, t.Validate()
}

// Format is what ParseType reads.
func Format(t es.AggregateType) string {
	if strings.ContainsAny(t.Name, ".") || strings.Contains(t.Scope(), "/") {
		return t.Scope() + "/" + t.Name
	}
	return t.String()
}

// Types are the aggregate types of all topics that a subscription ever began on.
func Types(ctx context.Context, rdb redis.UniversalClient) ([]es.AggregateType, error) {
	topics, err := recovery.Topics(ctx, rdb)
	found := map[es.AggregateType]bool{}
	for _, topic := range topics {
		if stem, kind := Split(topic); kind != "" {
			if t, err := ParseType(stem); err == nil {
				found[t] = true
			}
		}
	}
	return sorted(found), err
}

// Split takes a topic apart: the aggregate type's text, and command, event or state; ""
// for a topic of another kind.
func Split(topic string) (stem, kind string) {
	i := strings.LastIndexByte(topic, ':')
	if i < 0 {
		return topic, ""
	}
	switch kind := topic[i+1:]; kind {
	case "command", "event", "state":
		return topic[:i], kind
	}
	return topic, ""
}

// ScanTypes looks through all keys for the indexes of aggregates, in small pages.
func ScanTypes(ctx context.Context, rdb redis.UniversalClient) ([]es.AggregateType, error) {
	found := map[es.AggregateType]bool{}
	err := EachNode(ctx, rdb, func(ctx context.Context, node Node) error {
		return ScanKeys(ctx, node.Client, "{v2:es:*}:ids", func(keys []string) error {
			for _, key := range keys {
				if t, ok := typeOf(key); ok {
					found[t] = true
				}
			}
			return nil
		})
	})
	return sorted(found), err
}

// typeOf reads the type in the tag of a store's key.
func typeOf(key string) (t es.AggregateType, ok bool) {
	scope, _, ok := strings.Cut(strings.TrimPrefix(key, "{v2:es:"), ":")
	alias, name, ok2 := strings.Cut(scope, ".")
	a, err := base64.RawURLEncoding.DecodeString(alias)
	n, err2 := base64.RawURLEncoding.DecodeString(name)
	t = es.AggregateType{Context: string(a), Name: string(n)}
	return t, ok && ok2 && err == nil && err2 == nil && t.Validate() == nil
}

func sorted(found map[es.AggregateType]bool) []es.AggregateType {
	return slices.SortedFunc(maps.Keys(found), func(a, b es.AggregateType) int { return strings.Compare(a.String(), b.String()) })
}

// Count is how many aggregates the index of a type holds.
func Count(ctx context.Context, rdb redis.UniversalClient, t es.AggregateType) (n int64, err error) {
	return sum(ctx, rdb, t, rediskey.Index)
}

// Notes is how many notes of unpublished commits there are.
func Notes(ctx context.Context, rdb redis.UniversalClient, t es.AggregateType) (n int64, err error) {
	return sum(ctx, rdb, t, rediskey.Outbox)
}

// sum adds up the members of one key for each bucket.
func sum(ctx context.Context, rdb redis.UniversalClient, t es.AggregateType, key func(es.AggregateType, int) string) (n int64, err error) {
	cards := make([]*redis.IntCmd, rediskey.Buckets)
	_, err = redisrun.Do(ctx, 0, func() ([]redis.Cmder, error) {
		return rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for b := range cards {
				cards[b] = p.ZCard(ctx, key(t, b))
			}
			return nil
		})
	})
	for _, c := range cards {
		n += c.Val()
	}
	return n, err
}

// Find is the aggregate of an id, in whatever tenant holds it.
func Find(ctx context.Context, rdb redis.UniversalClient, id es.AggregateID) (es.AggregateID, error) {
	key := rediskey.EventKeys(id)
	prefix, _, _ := strings.Cut(key.Member, ".")
	members, err := redisrun.Do(ctx, 0, func() ([]string, error) {
		return rdb.ZRangeByLex(ctx, key.IDs, &redis.ZRangeBy{Min: "[" + prefix + ".", Max: "(" + prefix + "/", Count: 1}).Result()
	})
	if err != nil {
		return id, err
	}
	if len(members) == 0 {
		return id, &es.Error{Op: "find", Aggregate: id, Err: es.ErrNotFound}
	}
	_, tenant, err := rediskey.ParseMember(members[0])
	return id.InTenant(tenant), err
}

// TopicsOf are all topics that a subscription ever began on.
func TopicsOf(ctx context.Context, rdb redis.UniversalClient) ([]string, error) {
	return recovery.Topics(ctx, rdb)
}
