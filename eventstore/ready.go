package eventstore

import (
	"context"
	"fmt"
	"math"
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
//     cannot be switched off;
//   - with [es.ErrEviction] where the server may evict keys that have no expiry;
//   - with [es.ErrInvalid] for a client that reads from replicas, or that Replicas does
//     not work with.
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
	if err := s.checkReplicas(); err != nil {
		return err
	}
	if !s.durable.Load() {
		if err := redisrun.CheckEviction(ctx, s.rdb, patience, s.logger()); err != nil {
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
