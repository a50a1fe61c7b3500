package preparekey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// Ready is an [es.ErrEviction] where a server may evict reservations when its memory is
// full. Reservations have no expiry, so a volatile policy is one to warn of and no
// error; so is a server that does not say. A service calls it before it takes commands.
func (k *Keys[V]) Ready(ctx context.Context) (err error) {
	if c, ok := k.rdb.(*redis.ClusterClient); ok {
		err = c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return k.checkEviction(ctx, node) })
	} else {
		err = k.checkEviction(ctx, k.rdb)
	}
	if err != nil {
		return &es.Error{Op: "prepare keys ready", Err: err}
	}
	return nil
}

func (k *Keys[V]) checkEviction(ctx context.Context, node redis.Cmdable) error {
	info, err := redisrun.Do(ctx, k.Patience, func() (string, error) { return node.Info(ctx, "memory").Result() })
	if errors.Is(err, es.ErrUnavailable) || errors.Is(err, es.ErrUncertain) || ctx.Err() != nil {
		return err
	}
	log := k.Logger
	if log == nil {
		log = slog.Default()
	}
	policy := ""
	for line := range strings.Lines(info) {
		if p, ok := strings.CutPrefix(line, "maxmemory_policy:"); ok {
			policy = strings.TrimSpace(p)
		}
	}
	switch {
	case policy == "noeviction":
	case strings.HasPrefix(policy, "allkeys-"):
		return fmt.Errorf("%w: maxmemory-policy is %s, must be noeviction", es.ErrEviction, policy)
	case policy == "":
		log.WarnContext(ctx, "the server does not say which keys it evicts when memory is full; it must be noeviction", "reason", err)
	default:
		log.WarnContext(ctx, "maxmemory-policy should be noeviction; reservations are safe, whatever has an expiry is not", "policy", policy)
	}
	return nil
}
