package eventstore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// Unpublished implements [es.Outbox]. It pages through the notes by rank, lowest
// version first within each bucket; a note that moves meanwhile may come twice or be
// left to the next look. A member that is no note is an [es.ErrCorrupt], after which the
// sequence goes on where the caller does: it hides no other note.
func (s *Store) Unpublished(ctx context.Context, t es.AggregateType) iter.Seq2[es.Note, error] {
	return func(yield func(es.Note, error) bool) {
		if err := s.notes(ctx, t, yield); err != nil {
			yield(es.Note{}, fail("unpublished "+t.String(), es.AggregateID{}, 0, "", err))
		}
	}
}

// notes reads the first page of every bucket in one round trip, which mostly is all.
func (s *Store) notes(ctx context.Context, t es.AggregateType, yield func(es.Note, error) bool) error {
	const size = 256
	if err := t.Validate(); err != nil {
		return err
	}
	more := make([]int, rediskey.Buckets)
	for b := range more {
		more[b] = b
	}
	for rank := int64(0); len(more) > 0; rank += size {
		pages := make([]*redis.ZSliceCmd, len(more))
		_, err := do(ctx, s, func() ([]redis.Cmder, error) {
			return s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i, b := range more {
					pages[i] = p.ZRangeWithScores(ctx, rediskey.Outbox(t, b), rank, rank+size-1)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		var full []int
		for i, b := range more {
			page := pages[i].Val()
			for _, z := range page {
				if !yield(note(t, z)) {
					return nil
				}
			}
			if len(page) == size {
				full = append(full, b)
			}
		}
		more = full
	}
	return nil
}

func note(t es.AggregateType, z redis.Z) (es.Note, error) {
	member, _ := z.Member.(string)
	id, tenant, err := rediskey.ParseIdentity(member)
	if err != nil {
		return es.Note{}, fail("unpublished "+t.String(), es.AggregateID{}, 0, "", err)
	}
	return es.Note{Aggregate: t.ID(id).InTenant(tenant), Version: int(z.Score)}, nil
}

// Published implements [es.Outbox].
func (s *Store) Published(ctx context.Context, id es.AggregateID, from, through int) (int, error) {
	next, err := s.PublishedAll(ctx, es.Move{Aggregate: id, From: from, Through: through})
	return max(next[0], 0), err
}

// PublishedAll implements [es.Outbox].
func (s *Store) PublishedAll(ctx context.Context, moves ...es.Move) ([]int, error) {
	next, failed := make([]int, len(moves)), []error(nil)
	replies := make([]*redis.Cmd, len(moves))
	bad := func(i int, err error) {
		next[i], failed = -1, append(failed, fail("published", moves[i].Aggregate, moves[i].Through, "", err))
	}
	for i := range moves {
		if err := checkMove(&moves[i]); err != nil {
			bad(i, err)
		}
	}
	if _, err := do(ctx, s, func() (any, error) { return nil, s.move(ctx, moves, next, replies) }); err != nil && len(moves) == 1 && next[0] == 0 {
		bad(0, err)
		return next, failed[0]
	}
	for i, reply := range replies {
		switch {
		case next[i] < 0:
		case reply == nil:
			bad(i, ctx.Err())
		case reply.Err() != nil:
			bad(i, redisrun.Explain(reply.Err()))
		default:
			at, ok := reply.Val().(int64)
			if next[i] = int(at); !ok {
				bad(i, unexpected(reply.Val()))
			}
		}
	}
	if len(failed) == 1 {
		return next, failed[0]
	}
	return next, errors.Join(failed...)
}

func checkMove(m *es.Move) error {
	if m.From < 1 || m.Through < m.From {
		return es.Invalid("published versions %d to %d", m.From, m.Through)
	}
	return m.Aggregate.Validate()
}

// move sends the script once for each move but the bad ones. It may be repeated: a note
// that was moved already is left where it is.
func (s *Store) move(ctx context.Context, moves []es.Move, next []int, replies []*redis.Cmd) (err error) {
	for _, known := range []bool{true, false} {
		_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, m := range moves {
				if next[i] == 0 {
					key := rediskey.EventKeys(m.Aggregate)
					replies[i] = lua.MoveNote.Queue(ctx, p, known, []string{key.Outbox, key.Stream}, key.Identity, m.From, m.Through)
				}
			}
			return nil
		})
		if !slices.ContainsFunc(replies, func(c *redis.Cmd) bool { return c != nil && redisrun.Word(c.Err()) == "NOSCRIPT" }) {
			break
		}
	}
	return err
}

// PurgeOptions are the knobs of [Store.Purge].
type PurgeOptions struct {
	// Tombstone keeps the id from being used again, by Kotlin nodes too. Without one
	// the id is free, and so are the request ids of its first life.
	Tombstone bool
}

// Purge removes every trace of an aggregate: its commits, request ids, note, index
// entry and snapshot. The aggregate must be at version, else it is an
// [es.ErrVersionConflict]; where nothing is stored it is an [es.ErrNotFound], and so it
// is after an [es.ErrUncertain] that had purged it. What was published stays with
// whoever read it. It cannot be undone.
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
	if err := s.mayPurge(ctx, key.Stream, version); err != nil {
		return err
	}
	// The snapshot lives in another slot. It goes first, so that a purge that is cut
	// short leaves no snapshot without events, and again after, in case one was saved
	// in between; the repository would not believe it anyhow.
	if err := s.dropSnapshot(ctx, id); err != nil {
		return err
	}
	keys := []string{key.Stream, key.Requests, key.IDs, key.Outbox, key.Purged}
	answer, err := do(ctx, s, func() (any, error) {
		return lua.PurgeAggregate.Run(ctx, s.rdb, keys, strconv.Itoa(version), key.Identity, key.Member, tombstone)
	})
	if err != nil {
		return err
	}
	switch answer {
	case "ok", "none": // none: an earlier try did it, whose reply was lost
		return s.dropSnapshot(ctx, id)
	case "version":
		return es.ErrVersionConflict
	}
	return unexpected(answer)
}

// mayPurge looks before anything goes; the script looks again.
func (s *Store) mayPurge(ctx context.Context, stream string, version int) error {
	newest, err := do(ctx, s, func() ([]redis.Z, error) { return s.rdb.ZRevRangeWithScores(ctx, stream, 0, 0).Result() })
	switch {
	case err != nil:
		return err
	case len(newest) == 0:
		return es.ErrNotFound
	case newest[0].Score != float64(version):
		return es.ErrVersionConflict
	}
	return nil
}

func (s *Store) dropSnapshot(ctx context.Context, id es.AggregateID) error {
	_, err := do(ctx, s, func() (int64, error) { return s.rdb.Unlink(ctx, rediskey.Snapshot(id)).Result() })
	return err
}
