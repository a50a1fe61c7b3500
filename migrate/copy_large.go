package migrate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/rediskey"
)

// copyLarge copies the commits of one aggregate by pages. What was read is compared with
// the manifest at the end: a source that changed meanwhile is told, and verify fails.
func (c *copier) copyLarge(ctx context.Context, rec *record) error {
	k, sum, wrote, odd := rediskey.EventKeys(rec.Aggregate.id()), newOrdered(), false, false
	err := c.source.pages(ctx, rec.Key, rec.Count, rec.Bytes, func(page []redis.Z) error {
		if len(page) == 0 || odd {
			return nil
		}
		before := sum.bytes
		for _, z := range page {
			sum.add(member(z), z.Score)
		}
		there, err := do(ctx, c.target, func() ([]redis.Z, error) {
			return c.target.rdb.ZRangeByScoreWithScores(ctx, k.Stream, &redis.ZRangeBy{Min: score(page[0]), Max: score(page[len(page)-1])}).Result()
		})
		if err != nil {
			return err
		}
		lacks, p := missing(rec, page, there)
		if p != nil {
			c.report(p)
			odd = true
			return nil
		}
		if !c.dry {
			wrote = wrote || len(lacks) > 0
			err = c.writePage(ctx, rec, k, page, lacks)
		}
		if err != nil {
			return err
		}
		return c.meter.passed(ctx, 0, sum.bytes-before)
	})
	if err != nil || odd {
		return err
	}
	p := unlike(rec, sum.count > 0, sum.sum(), nil)
	switch {
	case p != nil:
		c.report(p)
		return nil
	case c.dry:
		c.count(&write{rec: rec, there: true})
		return nil
	}
	if _, err := do(ctx, c.target, func() (int64, error) { return c.target.rdb.ZAddNX(ctx, k.IDs, redis.Z{Member: k.Member}).Result() }); err != nil {
		return err
	}
	if p, err = c.targetProblem(ctx, rec); err != nil {
		return err
	}
	if p != nil {
		c.report(p)
		return nil
	}
	c.count(&write{rec: rec, there: !wrote})
	return nil
}

func score(z redis.Z) string { return strconv.FormatFloat(z.Score, 'f', -1, 64) }

func (c *copier) writePage(ctx context.Context, rec *record, k rediskey.Events, page, lacks []redis.Z) error {
	w := &write{rec: rec}
	err := c.target.pipeline(ctx, func(p redis.Pipeliner) {
		if len(lacks) > 0 {
			w.added = p.ZAddNX(ctx, k.Stream, lacks...)
		}
		w.requests = p.SAdd(ctx, k.Requests, decodedRequests(page)...)
	})
	if err == nil {
		err = w.err()
	}
	if err != nil {
		return c.target.explain(ctx, fmt.Errorf("write %q: %w", rec.Target, err))
	}
	return nil
}
