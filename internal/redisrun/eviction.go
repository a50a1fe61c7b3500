package redisrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
)

// CheckEviction asks every master which keys it evicts when its memory is full. Any key
// is an [es.ErrEviction]. Those with an expiry are one to warn of, since what must last
// has none; so is a server that does not say.
func CheckEviction(ctx context.Context, rdb redis.UniversalClient, patience time.Duration, log *slog.Logger) error {
	ask := func(ctx context.Context, node redis.Cmdable) error {
		info, err := Do(ctx, patience, func() (string, error) { return node.Info(ctx, "memory").Result() })
		if errors.Is(err, es.ErrUnavailable) || errors.Is(err, es.ErrUncertain) {
			return err
		}
		policy := evictionPolicy(info)
		switch {
		case policy == "noeviction":
		case policy == "":
			log.WarnContext(ctx, "the server does not say which keys it evicts when memory is full; it must be noeviction", "reason", err)
		case strings.HasPrefix(policy, "allkeys-"):
			return fmt.Errorf("%w: maxmemory-policy is %s, must be noeviction", es.ErrEviction, policy)
		default:
			log.WarnContext(ctx, "maxmemory-policy should be noeviction; only keys with an expiry are in danger", "policy", policy)
		}
		return nil
	}
	if c, ok := rdb.(*redis.ClusterClient); ok {
		return c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return ask(ctx, node) })
	}
	return ask(ctx, rdb)
}

func evictionPolicy(info string) string {
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(line, "maxmemory_policy:"); ok {
			return strings.TrimSpace(policy)
		}
	}
	return ""
}
