package inspect

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/redisrun"
)

// Prepared counts reservations.
type Prepared struct {
	All int64
	// Ended counts those that ended more than ten minutes ago, which a sweep removes.
	Ended int64
}

// errEnough ends a walk through the keys.
var errEnough = errors.New("enough was seen")

// CountPrepared walks through the keys that begin with prefix, in small pages, until it
// has read so many pages of all keys of each server (0 = all).
func CountPrepared(ctx context.Context, rdb redis.UniversalClient, prefix string, limit int) (n Prepared, err error) {
	err = EachNode(ctx, rdb, func(ctx context.Context, node Node) error {
		now, err := redisrun.Do(ctx, 0, func() (time.Time, error) { return node.Client.Time(ctx).Result() })
		if err != nil {
			return err
		}
		ended := now.Add(-10 * time.Minute).UnixMilli()
		pages := 0
		err = ScanKeys(ctx, node.Client, prefix+"*}", func(keys []string) error {
			if pages++; limit > 0 && pages > limit {
				return errEnough
			}
			if len(keys) == 0 {
				return nil
			}
			ends := make([]*redis.StringCmd, len(keys))
			_, _ = node.Client.Pipelined(ctx, func(p redis.Pipeliner) error { // what is gone meanwhile, or no hash, does not count
				for i, key := range keys {
					ends[i] = p.HGet(ctx, key, "ttlAt")
				}
				return nil
			})
			for _, e := range ends {
				at, err := strconv.ParseInt(e.Val(), 10, 64)
				if err != nil {
					continue
				}
				n.All++
				if at <= ended {
					n.Ended++
				}
			}
			return ctx.Err()
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	return n, err
}
