package doctor

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/preparekey"
	"github.com/headwater-go/headwater/wire"
)

// some is how many keys or aggregates are looked at where not all are asked for.
const some = 1000

// types are those that topics name, or with Full all there are.
func (v *visit) types(ctx context.Context) []es.AggregateType {
	find := inspect.Types
	if v.Full {
		find = inspect.ScanTypes
	}
	types, err := find(ctx, v.rdb)
	if err != nil {
		v.unable("", "aggregate types", err)
	}
	return types
}

// notes looks at HW026: at notes whose commit is older than a relay needs.
func (v *visit) notes(ctx context.Context) {
	const relayed = time.Minute
	for _, t := range v.types(ctx) {
		seen, old := 0, 0
		for n, err := range eventstore.New(v.rdb, wire.JSON()).Unpublished(ctx, t) {
			if err != nil {
				v.unable(inspect.Format(t), "notes", err)
				break
			}
			if seen++; seen > some && !v.Full {
				break
			}
			if c, err := eventstore.New(v.rdb, wire.JSON()).Find(ctx, n.Aggregate, n.Version); err != nil || time.Since(c.CreateTime) > relayed {
				old++
			}
		}
		if old > 0 {
			v.add("HW026", Warning, inspect.Format(t), "%d aggregates have commits that are unpublished for over a minute", old)
		}
	}
}

// reservations looks at HW027.
func (v *visit) reservations(ctx context.Context) {
	limit := 100 // pages, of about 500 keys each
	if v.Full {
		limit = 0
	}
	n, err := inspect.CountPrepared(ctx, v.rdb, "v2:prepare:{", limit)
	if err != nil {
		v.unable("", "reservations", err)
		return
	}
	if n.Ended > 0 {
		v.add("HW027", Note, "", "%d of %d reservations that were looked at ended over ten minutes ago and are not swept", n.Ended, n.All).fix = v.sweep
	}
}

// sweep sweeps the reservations of every name there is.
func (v *visit) sweep(ctx context.Context) (string, error) {
	names, removed := map[string]bool{}, 0
	err := inspect.EachNode(ctx, v.rdb, func(ctx context.Context, n inspect.Node) error {
		return inspect.ScanKeys(ctx, n.Client, "v2:prepare:{*}", func(keys []string) error {
			for _, key := range keys {
				text, _, _ := strings.Cut(strings.TrimPrefix(key, "v2:prepare:{"), ".")
				if name, err := base64.RawURLEncoding.DecodeString(text); err == nil {
					names[string(name)] = true
				}
			}
			return nil
		})
	})
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err == nil {
			var n int
			n, err = preparekey.New[es.Raw](v.rdb, wire.JSON(), name).Sweep(ctx)
			removed += n
		}
	}
	return fmt.Sprintf("removed: reservations %d", removed), err
}

// legacy looks at HW028: at the keys that the stores' guard asks for, or with Full at all.
func (v *visit) legacy(ctx context.Context) {
	if v.Full {
		v.legacyKeys(ctx)
		return
	}
	for _, t := range v.types(ctx) {
		replies, err := redisrun.Do(ctx, 0, func() ([]redis.Cmder, error) {
			return v.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, key := range legacy.Sentinels(t) {
					p.Exists(ctx, key)
				}
				return nil
			})
		})
		if err != nil {
			v.unable(inspect.Format(t), "keys of older layouts", err)
		}
		found := int64(0)
		for _, r := range replies {
			if n, ok := r.(*redis.IntCmd); ok {
				found += n.Val()
			}
		}
		if found > 0 {
			v.add("HW028", Error, inspect.Format(t), "there are keys of an older layout: services refuse to start")
		}
	}
}

func (v *visit) legacyKeys(ctx context.Context) {
	found := map[string]int{}
	err := inspect.EachNode(ctx, v.rdb, func(ctx context.Context, n inspect.Node) error {
		return inspect.ScanKeys(ctx, n.Client, "*", func(keys []string) error {
			for _, key := range keys {
				if _, ours := legacy.Canonical(key); ours {
					continue
				}
				if f, ok := legacy.Recognize(key, ""); ok {
					found[f.Stem]++
				}
			}
			return ctx.Err()
		})
	})
	if err != nil {
		v.unable("", "keys of older layouts", err)
	}
	for _, stem := range slices.Sorted(maps.Keys(found)) {
		v.add("HW028", Error, stem, "%d keys look like those of an older layout: services refuse to start", found[stem])
	}
}

// index looks at HW029: whether what the index holds has commits, and whether the count
// of commits is the highest version.
func (v *visit) index(ctx context.Context) {
	for _, t := range v.types(ctx) {
		seen, wrong, first := 0, 0, ""
		var page []es.AggregateID
		look := func() error {
			for i, problem := range v.disagree(ctx, page) {
				if problem != "" {
					if wrong++; first == "" {
						first = page[i].ID + ": " + problem
					}
				}
			}
			page = page[:0]
			return ctx.Err()
		}
		for id, err := range eventstore.New(v.rdb, wire.JSON()).Scan(ctx, t, "") {
			if err != nil {
				v.add("HW029", Error, inspect.Format(t), "the index cannot be read: %v", err)
				break
			}
			if page = append(page, id); len(page) == 100 && look() != nil {
				break
			}
			if seen++; seen >= some && !v.Full {
				break
			}
		}
		if err := look(); err != nil {
			v.unable(inspect.Format(t), "the index", err)
		}
		if wrong > 0 {
			v.add("HW029", Error, inspect.Format(t), "%d of %d aggregates of the index contradict their commits, such as %s", wrong, seen, first)
		}
	}
}

// disagree says for each id what contradicts what; "" = nothing.
func (v *visit) disagree(ctx context.Context, ids []es.AggregateID) []string {
	problems := make([]string, len(ids))
	if len(ids) == 0 {
		return problems
	}
	cards, requests, last := make([]*redis.IntCmd, len(ids)), make([]*redis.IntCmd, len(ids)), make([]*redis.ZSliceCmd, len(ids))
	_, err := redisrun.Do(ctx, 0, func() ([]redis.Cmder, error) {
		return v.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range ids {
				key := rediskey.EventKeys(id)
				cards[i], requests[i], last[i] = p.ZCard(ctx, key.Stream), p.SCard(ctx, key.Requests), p.ZRevRangeWithScores(ctx, key.Stream, 0, 0)
			}
			return nil
		})
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		v.unable(ids[0].Type.String(), "commits", err)
		return problems
	}
	for i := range ids {
		n, version := cards[i].Val(), int64(0)
		if z := last[i].Val(); len(z) > 0 {
			version = int64(z[0].Score)
		}
		switch {
		case n == 0:
			problems[i] = "there are no commits"
		case n != version:
			problems[i] = fmt.Sprintf("%d commits, and the highest version is %d", n, version)
		case requests[i].Val() != n:
			problems[i] = fmt.Sprintf("%d commits, and %d request ids", n, requests[i].Val())
		}
	}
	return problems
}
