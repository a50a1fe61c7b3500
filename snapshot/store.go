// Package snapshot keeps the newest snapshot of each aggregate in Redis, in Wow's layout.
//
// A snapshot is a cache of what the events say, never an authority: without it the
// state is the same, only later. So whatever cannot be read is an
// [es.UnreadableSnapshot], from which a repository recovers by replaying, and an old
// snapshot costs some replay and nothing else.
package snapshot

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// DefaultMaxBytes is the size limit of a stored snapshot.
const DefaultMaxBytes = 16 << 20

// Store is an [es.SnapshotStore] whose state has the type S. It is safe for concurrent
// use once its fields are set. Every error is an [es.Error] around one of the kinds
// that [es.SnapshotStore] names, [es.ErrWrongFormat], [es.ErrTooLarge], [es.ErrInvalid],
// or a fault of the server.
//
// Whatever writes is a script and runs on the master. Load and Version are plain reads,
// which a client that is set to read from replicas takes there: what it finds is at
// worst an older snapshot or none, and the events after it come from the event store.
type Store[S any] struct {
	// Schema marks the snapshots that this store writes. One with another mark is
	// unreadable to it; one without a mark, as Kotlin nodes write them, is read.
	// Defaults to a fingerprint of S: the names under which encoding/json writes its
	// fields, their msgpack tags, and their types, all the way down. Renaming, adding,
	// removing or retyping such a field changes it, and so does moving it into an
	// embedded struct or giving two fields of one struct type two equal ones. The order
	// of fields, the names of Go types and packages, and omitempty do not. Of a type that writes its own JSON or text (such as time.Time) only its name
	// counts. What the fingerprint cannot see is a change of meaning (cents for euros,
	// another Evolve): set Schema to a new text then. With the state type [es.Raw] every
	// mark is read, and kept.
	Schema string
	// MaxBytes is the size limit of an encoded snapshot. Defaults to [DefaultMaxBytes].
	MaxBytes int

	rdb         redis.Cmdable
	codec       es.Codec
	fingerprint string
}

// New is a store of snapshots with the state type S. It panics where a struct of S has an
// unexported field without json:"-", which a snapshot would lose. The codec must write JSON that
// begins as Wow's does, or MessagePack as package wire does: the guard of
// [Store.Save] reads the version in it. The client may be a pipelining one.
func New[S any](rdb redis.Cmdable, codec es.Codec) *Store[S] {
	return &Store[S]{rdb: rdb, codec: codec, fingerprint: fingerprint[S]()}
}

// Load implements [es.SnapshotStore]. A key that holds no string is an
// [es.UnreadableSnapshot] without bytes; a snapshot of the other codec is an
// [es.ErrWrongFormat], which is not mended by replacing it.
func (s *Store[S]) Load(ctx context.Context, id es.AggregateID) (es.Snapshot[S], error) {
	snap, err := s.load(ctx, id)
	if err != nil {
		return es.Snapshot[S]{}, fail("load snapshot", id, 0, err)
	}
	return snap, nil
}

func (s *Store[S]) load(ctx context.Context, id es.AggregateID) (snap es.Snapshot[S], err error) {
	raw, err := s.get(ctx, id)
	if err != nil {
		return snap, err
	}
	if snap.Meta, err = s.codec.DecodeSnapshot(raw, &snap.State); err == nil {
		err = s.check(id, snap.Meta)
	}
	if err != nil {
		return snap, unreadable(raw, err)
	}
	snap.Aggregate, snap.Stored = id, raw
	return snap, nil
}

// check reports why a snapshot that was decoded is not one of id in today's shape.
func (s *Store[S]) check(id es.AggregateID, m es.Meta) error {
	got := m.Aggregate
	if got.Type.Context != id.Type.Context || got.Type.Name != id.Type.Name || got.ID != id.ID || got.Tenant != id.Tenant {
		return es.Corrupt("it is one of %s in context %q", got, got.Type.Context)
	}
	if err := checkVersion(m.Version); err != nil {
		return err
	}
	if mark := s.mark(); mark != "" && m.Schema != "" && m.Schema != mark {
		return es.Corrupt("its schema is %q, not %q", m.Schema, mark)
	}
	return nil
}

func (s *Store[S]) get(ctx context.Context, id es.AggregateID) ([]byte, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	raw, err := redisrun.Do(ctx, 0, func() ([]byte, error) {
		return s.rdb.Get(ctx, rediskey.Snapshot(id)).Bytes()
	})
	if errors.Is(err, redis.Nil) {
		return nil, es.ErrNotFound
	}
	return raw, wrongType(err)
}

// Save implements [es.SnapshotStore]. A snapshot of the same version is replaced. It
// writes the store's Schema, and now where SnapshotTime is zero. An expiry that
// somebody set on the key is gone afterwards. Over a snapshot of the other codec it is
// an [es.ErrWrongFormat].
func (s *Store[S]) Save(ctx context.Context, snap es.Snapshot[S]) error {
	return fail("save snapshot", snap.Aggregate, snap.Version, s.save(ctx, snap))
}

func (s *Store[S]) save(ctx context.Context, snap es.Snapshot[S]) error {
	data, err := s.encode(snap)
	if err != nil {
		return err
	}
	answer, err := s.run(ctx, lua.SaveSnapshot, snap.Aggregate, snap.Version, data)
	if err != nil {
		return err
	}
	switch answer {
	case "Ok", "Ignored":
		return nil
	case "Unreadable":
		return es.Corrupt("what is stored shows no version")
	case "WrongFormat":
		return es.ErrWrongFormat
	}
	return unexpected(answer)
}

// Replace implements [es.SnapshotStore]. It asks for no version and no format, so it
// also mends what Save refuses to touch. Where s itself is stored already it is true.
func (s *Store[S]) Replace(ctx context.Context, old []byte, snap es.Snapshot[S]) (bool, error) {
	done, err := s.replace(ctx, old, snap)
	return done, fail("replace snapshot", snap.Aggregate, snap.Version, err)
}

func (s *Store[S]) replace(ctx context.Context, old []byte, snap es.Snapshot[S]) (bool, error) {
	data, err := s.encode(snap)
	if err != nil {
		return false, err
	}
	answer, err := s.run(ctx, lua.ReplaceSnapshot, snap.Aggregate, old, data)
	if err != nil {
		return false, err
	}
	switch answer {
	case "Ok":
		return true, nil
	case "Changed":
		return false, nil
	}
	return false, unexpected(answer)
}

// Drop removes the snapshot of an aggregate, whatever the key holds. Where there is
// none it does nothing.
func (s *Store[S]) Drop(ctx context.Context, id es.AggregateID) error {
	err := id.Validate()
	if err == nil {
		_, err = redisrun.Do(ctx, 0, func() (int64, error) {
			return s.rdb.Del(ctx, rediskey.Snapshot(id)).Result()
		})
	}
	return fail("drop snapshot", id, 0, err)
}

func (s *Store[S]) encode(snap es.Snapshot[S]) ([]byte, error) {
	if err := snap.Aggregate.Validate(); err != nil {
		return nil, err
	}
	if err := checkVersion(snap.Version); err != nil {
		return nil, es.Invalid("%w", err)
	}
	if mark := s.mark(); mark != "" {
		snap.Schema = mark
	}
	if snap.SnapshotTime.IsZero() {
		snap.SnapshotTime = time.Now().UTC().Truncate(time.Millisecond)
	}
	data, err := s.codec.EncodeSnapshot(&snap.Meta, source(&snap.State))
	if err != nil {
		return nil, err
	}
	limit := s.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	if len(data) > limit {
		return nil, tooLarge(len(data), limit)
	}
	return data, nil
}

func (s *Store[S]) run(ctx context.Context, script lua.Script, id es.AggregateID, args ...any) (any, error) {
	return redisrun.Do(ctx, 0, func() (any, error) {
		return script.Run(ctx, s.rdb, []string{rediskey.Snapshot(id)}, args...)
	})
}

func (s *Store[S]) mark() string {
	if s.Schema != "" {
		return s.Schema
	}
	return s.fingerprint
}
