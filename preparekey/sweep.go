package preparekey

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

const (
	// sweepGrace is for how long a reservation has ended before it is removed: what
	// GetValue still returns helps to see what happened.
	sweepGrace = 10 * time.Minute
	sweepPage  = 500
)

// Sweep removes the reservations of this name that ended more than ten minutes ago, by
// the server's clock, and says how many they were. It walks through all keys of the
// database, in pages, so once an hour by one process is plenty; it may run beside
// anything else. A cluster needs a cluster client, else it is an [es.ErrInvalid].
func (k *Keys[V]) Sweep(ctx context.Context) (removed int, err error) {
	if err := check("name", k.name); err != nil {
		return 0, &es.Error{Op: "sweep keys", Err: err}
	}
	var n atomic.Int64
	sweep := func(ctx context.Context, node redis.Cmdable) error { return k.sweepNode(ctx, node, &n) }
	if c, ok := k.rdb.(*redis.ClusterClient); ok {
		err = c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return sweep(ctx, node) })
	} else if err = k.refuseCluster(ctx); err == nil {
		err = sweep(ctx, k.rdb)
	}
	if err != nil {
		err = &es.Error{Op: "sweep keys of " + strconv.Quote(clip(k.name)), Err: err}
	}
	return int(n.Load()), err
}

// refuseCluster keeps a client that knows one node, or hides the nodes, from sweeping
// a part of a cluster.
func (k *Keys[V]) refuseCluster(ctx context.Context) error {
	info, err := redisrun.Do(ctx, k.Patience, func() (string, error) { return k.rdb.Info(ctx, "cluster").Result() })
	if errors.Is(err, es.ErrUnavailable) || errors.Is(err, es.ErrUncertain) {
		return err
	}
	if strings.Contains(info, "cluster_enabled:1") {
		return es.Invalid("the server is part of a cluster, and the client is no cluster client")
	}
	return nil // also where the server does not say
}

func (k *Keys[V]) sweepNode(ctx context.Context, node redis.Cmdable, removed *atomic.Int64) error {
	now, err := redisrun.Do(ctx, k.Patience, func() (time.Time, error) { return node.Time(ctx).Result() })
	if err != nil {
		return err
	}
	ended := now.Add(-sweepGrace).UnixMilli()
	match := rediskey.PreparePrefix(k.name) + "*}"
	for cursor := uint64(0); ; {
		page, err := redisrun.Do(ctx, k.Patience, func() (page page, err error) {
			page.keys, page.next, err = node.Scan(ctx, cursor, match, sweepPage).Result()
			return page, err
		})
		if err != nil {
			return err
		}
		if err := k.sweepPage(ctx, page.keys, ended, removed); err != nil {
			return err
		}
		if cursor = page.next; cursor == 0 {
			return nil
		}
	}
}

type page struct {
	keys []string
	next uint64
}

// sweepPage looks first, in one round trip, so that the script need not look at each key.
func (k *Keys[V]) sweepPage(ctx context.Context, keys []string, ended int64, removed *atomic.Int64) error {
	if len(keys) == 0 {
		return nil
	}
	ends := make([]*redis.StringCmd, len(keys))
	_, err := redisrun.Do(ctx, k.Patience, func() ([]redis.Cmder, error) {
		return k.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, key := range keys {
				ends[i] = p.HGet(ctx, key, "ttlAt")
			}
			return nil
		})
	})
	if err != nil && !errors.Is(err, redis.Nil) && !errors.Is(err, es.ErrCorrupt) {
		return err
	}
	for i, key := range keys {
		if at, err := ends[i].Int64(); err != nil || at > ended {
			continue
		}
		answer, err := redisrun.Do(ctx, k.Patience, func() (any, error) {
			return lua.SweepKey.Run(ctx, k.rdb, []string{key}, sweepGrace.Milliseconds())
		})
		if err != nil {
			return err
		}
		if answer == "removed" {
			removed.Add(1)
		}
	}
	return nil
}
