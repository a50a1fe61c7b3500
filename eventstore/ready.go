package eventstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// Ready reports whether the store may be used for these types; a service calls it
// before it takes commands. A server that is loading or electing a master is waited
// for until ctx is done. It fails
//   - with [es.ErrLegacyLayout] where keys of an older layout of a type are found, or
//     with the reason why they could not be looked for: the check fails closed and
//     cannot be switched off (seed 002, "Upgrade boundary");
//   - with [es.ErrEviction] where the server may evict keys that have no expiry;
//   - with [es.ErrInvalid] for a client that reads from replicas.
//
// It looks for what Wow 3.16 to 8.8 left behind; earlier layouts, and snapshots
// without events, only "headwater migrate audit" finds.
func (s *Store) Ready(ctx context.Context, types ...es.AggregateType) error {
	for _, t := range types {
		if err := s.check(ctx, t, time.Duration(math.MaxInt64)); err != nil {
			return fail("ready "+t.String(), es.AggregateID{}, 0, "", err)
		}
	}
	return nil
}

// guard is Ready for whoever did not call it.
func (s *Store) guard(ctx context.Context, t es.AggregateType) error {
	if _, ok := s.ready.Load(t); ok {
		return nil
	}
	return s.check(ctx, t, s.Patience)
}

func (s *Store) check(ctx context.Context, t es.AggregateType, patience time.Duration) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if c, ok := s.rdb.(*redis.ClusterClient); ok && c.Options().ReadOnly {
		return es.Invalid("the client reads from replicas (ReadOnly, RouteByLatency or RouteRandomly), and decisions must not be made on what they have not got yet")
	}
	if !s.durable.Load() {
		if err := s.checkEviction(ctx, patience); err != nil {
			return err
		}
		s.durable.Store(true)
	}
	if err := s.checkLegacy(ctx, t, patience); err != nil {
		return err
	}
	s.ready.Store(t, struct{}{})
	return nil
}

func (s *Store) checkLegacy(ctx context.Context, t es.AggregateType, patience time.Duration) error {
	keys := legacy.Sentinels(t)
	found := make([]*redis.IntCmd, len(keys))
	_, err := redisrun.Do(ctx, patience, func() ([]redis.Cmder, error) {
		return s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, key := range keys {
				found[i] = p.Exists(ctx, key)
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("look for keys of an older layout: %w", err)
	}
	for i, key := range keys {
		if found[i].Val() > 0 {
			return fmt.Errorf("%w: key %q; run headwater migrate audit", es.ErrLegacyLayout, key)
		}
	}
	return nil
}

// checkEviction asks every master for its policy. Keys of the store have no expiry, so
// only the allkeys policies can take them.
func (s *Store) checkEviction(ctx context.Context, patience time.Duration) error {
	ask := func(ctx context.Context, c redis.Cmdable) error {
		policy, err := redisrun.Do(ctx, patience, func() (string, error) { return evictionPolicy(ctx, c) })
		switch {
		case errors.Is(err, es.ErrUnavailable), errors.Is(err, es.ErrUncertain):
			return err
		case err != nil, policy == "":
			s.logger().WarnContext(ctx, "the server does not say which keys it evicts when memory is full; it must be noeviction", "reason", err)
		case strings.HasPrefix(policy, "allkeys-"):
			return fmt.Errorf("%w: maxmemory-policy is %s, must be noeviction", es.ErrEviction, policy)
		}
		return nil
	}
	if c, ok := s.rdb.(*redis.ClusterClient); ok {
		return c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return ask(ctx, c) })
	}
	return ask(ctx, s.rdb)
}

func evictionPolicy(ctx context.Context, c redis.Cmdable) (string, error) {
	info, err := c.Info(ctx, "memory").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(line, "maxmemory_policy:"); ok {
			return strings.TrimSpace(policy), nil
		}
	}
	return "", nil
}
