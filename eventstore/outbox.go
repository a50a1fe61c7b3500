package eventstore

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/lua"
)

// Unpublished implements [es.Outbox]. It pages through the notes by rank, lowest
// version first within each bucket; a note that moves meanwhile may come twice or be
// left to the next look.
func (s *Store) Unpublished(ctx context.Context, t es.AggregateType) iter.Seq2[es.Note, error] {
	return func(yield func(es.Note, error) bool) {
		for b := range rediskey.Buckets {
			more, err := s.notes(ctx, t, rediskey.Outbox(t, b), yield)
			if err != nil {
				yield(es.Note{}, fail("unpublished "+t.String(), es.AggregateID{}, 0, "", err))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// notes yields one bucket's notes, and says whether the caller wants more.
func (s *Store) notes(ctx context.Context, t es.AggregateType, key string, yield func(es.Note, error) bool) (bool, error) {
	const size = 256
	if err := t.Validate(); err != nil {
		return false, err
	}
	for rank := int64(0); ; rank += size {
		page, err := do(ctx, s, func() ([]redis.Z, error) { return s.rdb.ZRangeWithScores(ctx, key, rank, rank+size-1).Result() })
		if err != nil {
			return false, err
		}
		for _, z := range page {
			member, _ := z.Member.(string)
			id, tenant, err := rediskey.ParseIdentity(member)
			if err != nil {
				return false, err
			}
			if !yield(es.Note{Aggregate: t.ID(id).InTenant(tenant), Version: int(z.Score)}, nil) {
				return false, nil
			}
		}
		if len(page) < size {
			return true, nil
		}
	}
}

// Published implements [es.Outbox].
func (s *Store) Published(ctx context.Context, id es.AggregateID, from, through int) (int, error) {
	next, err := s.published(ctx, id, from, through)
	return next, fail("published", id, through, "", err)
}

func (s *Store) published(ctx context.Context, id es.AggregateID, from, through int) (int, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	if from < 1 || through < from {
		return 0, es.Invalid("published versions %d to %d", from, through)
	}
	key := rediskey.EventKeys(id)
	answer, err := do(ctx, s, func() (any, error) {
		return lua.MoveNote.Run(ctx, s.rdb, []string{key.Outbox, key.Stream}, key.Identity, from, through)
	})
	if err != nil {
		return 0, err
	}
	next, ok := answer.(int64)
	if !ok {
		return 0, unexpected(answer)
	}
	return int(next), nil
}

// PurgeOptions are the knobs of [Store.Purge].
type PurgeOptions struct {
	// Tombstone keeps the id from being used again, by Kotlin nodes too. Without one
	// the id is free, and so are the request ids of its first life.
	Tombstone bool
}

// Purge removes every trace of an aggregate: its commits, request ids, note, index
// entry and snapshot. The aggregate must be at version, else it is an
// [es.ErrVersionConflict] and only its snapshot is gone, which costs time and nothing
// else; where nothing is stored it is an [es.ErrNotFound]. What was published stays
// with whoever read it. It cannot be undone.
func (s *Store) Purge(ctx context.Context, id es.AggregateID, version int, o PurgeOptions) error {
	return fail("purge", id, version, "", s.purge(ctx, id, version, o))
}

func (s *Store) purge(ctx context.Context, id es.AggregateID, version int, o PurgeOptions) error {
	if err := id.Validate(); err != nil {
		return err
	}
	tombstone := ""
	if o.Tombstone {
		tombstone = "1"
	}
	key := rediskey.EventKeys(id)
	keys := []string{key.Stream, key.Requests, key.IDs, key.Outbox, key.Purged}
	// The snapshot lives in another slot. It goes first, so that a purge that is cut
	// short leaves no snapshot without events, and again after, in case one was saved
	// in between; the repository would not believe it anyhow.
	if err := s.dropSnapshot(ctx, id); err != nil {
		return err
	}
	answer, err := do(ctx, s, func() (any, error) {
		return lua.PurgeAggregate.Run(ctx, s.rdb, keys, strconv.Itoa(version), key.Identity, key.Member, tombstone)
	})
	if err != nil {
		return err
	}
	switch answer {
	case "ok":
		return s.dropSnapshot(ctx, id)
	case "none":
		return es.ErrNotFound
	case "version":
		return es.ErrVersionConflict
	}
	return unexpected(answer)
}

func (s *Store) dropSnapshot(ctx context.Context, id es.AggregateID) error {
	_, err := do(ctx, s, func() (int64, error) { return s.rdb.Unlink(ctx, rediskey.Snapshot(id)).Result() })
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}
