package migrate

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// sumOf is the checksum of a key that holds what rec says, or about as much, read by
// pages, and whether the key is there. limit, where it is not 0, is how many members of a
// ZSET count, from the first on.
func (s server) sumOf(ctx context.Context, rdb redis.Cmdable, rec *record, key string, limit int64) (there bool, sum string, err error) {
	on := server{pace: s.pace}
	switch rec.Kind {
	case legacy.Events, legacy.IDs:
		o := newOrdered()
		err = on.pagesOf(ctx, rdb, key, rec.Count, rec.Bytes, func(page []redis.Z) error {
			for _, z := range page {
				if limit == 0 || o.count < limit {
					o.add(member(z), z.Score)
				}
			}
			return nil
		})
		return o.count > 0, o.sum(), err
	case legacy.Requests, legacy.SharedRequests:
		return on.sumOfSet(ctx, rdb, key)
	case legacy.Snapshot:
		text, err := do(ctx, on, func() (string, error) { return rdb.Get(ctx, key).Result() })
		if isNil(err) {
			return false, "", nil
		}
		return err == nil, sumOfText(text), err
	}
	fields, err := do(ctx, on, func() (map[string]string, error) { return rdb.HGetAll(ctx, key).Result() })
	sum, _ = sumOfFields(fields)
	return len(fields) > 0, sum, err
}

func (s server) sumOfSet(ctx context.Context, rdb redis.Cmdable, key string) (there bool, sum string, err error) {
	var u unordered
	err = s.scanSetOf(ctx, rdb, key, func(page []string) error {
		for _, m := range page {
			u.add(m)
		}
		return nil
	})
	return u.count > 0, u.sum(), err
}

// targetProblem reads one target key, and what belongs to it, and says what is wrong.
func (s *step) targetProblem(ctx context.Context, rec *record) (*Problem, error) {
	there, sum, err := s.target.sumOf(ctx, s.target.rdb, rec, rec.Target, 0)
	if isWrongType(err) {
		return s.blocks(TargetDiffers, rec.Target, "it is of another type"), nil
	}
	if err != nil {
		return nil, s.target.blame(ctx, err)
	}
	if !there || sum != rec.Sum {
		return s.blocks(TargetDiffers, rec.Target, fmt.Sprintf("it is not what %q is", rec.Key)), nil
	}
	if rec.Kind != legacy.Events {
		return nil, nil //nolint:nilnil // nothing is wrong
	}
	k := rediskey.EventKeys(rec.Aggregate.id())
	_, sum, err = s.target.sumOfSet(ctx, s.target.rdb, k.Requests)
	if err != nil {
		return nil, s.target.blame(ctx, err)
	}
	if sum != rec.RequestSum {
		return s.blocks(TargetDiffers, k.Requests, "its request ids are not those of the commits"), nil
	}
	score, err := do(ctx, s.target, func() (float64, error) { return s.target.rdb.ZScore(ctx, k.IDs, k.Member).Result() })
	if isNil(err) || err == nil && score != 0 {
		return s.blocks(TargetDiffers, k.IDs, fmt.Sprintf("it does not hold %s", rec.Aggregate.id())), nil
	}
	return nil, err
}

func (s *step) blocks(code Code, key, detail string) *Problem {
	return &Problem{Code: code, Key: key, Detail: detail, Blocks: true}
}

// targets are the problems of target keys that fit into one round trip, by record.
func (s *step) targets(ctx context.Context, group []*record) ([]*Problem, error) {
	found := make([]*Problem, len(group))
	got := make([]content, len(group))
	requests := make([]*redis.StringSliceCmd, len(group))
	index := make([]*redis.FloatCmd, len(group))
	err := s.target.pipeline(ctx, func(p redis.Pipeliner) {
		for i, rec := range group {
			switch rec.Kind {
			case legacy.Events:
				k := rediskey.EventKeys(rec.Aggregate.id())
				got[i] = content{members: p.ZRangeWithScores(ctx, rec.Target, 0, rec.Count)}
				requests[i], index[i] = p.SMembers(ctx, k.Requests), p.ZScore(ctx, k.IDs, k.Member)
			case legacy.Snapshot:
				got[i] = content{text: p.Get(ctx, rec.Target)}
			default:
				got[i] = content{fields: p.HGetAll(ctx, rec.Target)}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for i, rec := range group {
		there, sum := got[i].sum()
		good := got[i].err() == nil && there && sum == rec.Sum
		if good && requests[i] != nil {
			_, sum := content{set: requests[i]}.sum()
			good = requests[i].Err() == nil && sum == rec.RequestSum && index[i].Err() == nil && index[i].Val() == 0
		}
		if good {
			continue
		}
		// Slowly, and in words.
		if found[i], err = s.targetProblem(ctx, rec); err != nil {
			return nil, err
		}
	}
	return found, nil
}
