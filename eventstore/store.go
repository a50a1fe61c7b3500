// Package eventstore keeps the commits of aggregates in Redis, in Wow's canonical v2
// layout, each append one atomic script.
package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// DefaultMaxBytes is the size limit of one encoded commit.
const DefaultMaxBytes = 16 << 20

// MaxBatch limits the commits of one Append: the script holds the server while it runs.
const MaxBatch = 1000

// MaxBatchBytes limits the encoded commits of one Append together: a server drops a
// client that sends too much at once (client-query-buffer-limit).
const MaxBatchBytes = 256 << 20

// Store is an [es.EventStore], an [es.Scanner] and an [es.Outbox]. It is safe for
// concurrent use once its fields are set. Every error is an [es.Error].
type Store struct {
	// MaxBytes is the size limit of one encoded commit. Defaults to [DefaultMaxBytes].
	MaxBytes int
	// Patience is how long a server may be loading, electing a master, moving a slot
	// or busy before a call fails as [es.ErrUnavailable]. Defaults to 5 s.
	Patience time.Duration
	// Replicas is how many replicas must confirm a commit before Append succeeds, and
	// before FindRequest finds it; else they fail as [es.ErrUnreplicated]. It narrows what
	// a failover can lose, and costs a round trip to the replicas. It needs a client that
	// is no AutoPipeline one. Defaults to none.
	Replicas int
	// ReplicaTimeout is how long they are waited for; it must be shorter than the
	// client's read timeout. Defaults to 1 s.
	ReplicaTimeout time.Duration
	// Publish says that the buses are on this server too, and use the same codec: then an
	// append that leaves a note, of one commit, publishes it in the same atomic step, and
	// leaves none, where no older version is unpublished. It saves the publishers' round
	// trips. On a cluster it changes nothing, since a script cannot reach the topics there.
	Publish bool
	// Logger hears what [Store.Ready] could not find out. Defaults to slog.Default().
	Logger *slog.Logger

	rdb     redis.UniversalClient
	codec   es.Codec
	apart   atomic.Bool // the topics are in other slots
	durable atomic.Bool // the server was asked what it evicts
	ready   sync.Map    // es.AggregateType -> struct{}: checked for legacy keys
}

// New is a store on a standalone server, Sentinel, or a cluster. The client may be an
// AutoPipeline one, which is the way to high throughput. Over a cluster such a client
// hides the cluster's masters, and whether it reads from replicas: call [Store.Ready] of
// a store with the plain client first.
func New(rdb redis.UniversalClient, codec es.Codec) *Store {
	return &Store{rdb: rdb, codec: codec}
}

func (s *Store) logger() *slog.Logger {
	if s.Logger == nil {
		return slog.Default()
	}
	return s.Logger
}

// do runs f through [redisrun.Do].
func do[T any](ctx context.Context, s *Store, f func() (T, error)) (T, error) {
	return redisrun.Do(ctx, s.Patience, f)
}

// fail says where err happened; nil stays nil.
func fail(op string, id es.AggregateID, version int, requestID string, err error) error {
	var e *es.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &es.Error{Op: op, Aggregate: id, Version: version, RequestID: requestID, Err: err}
}

func unexpected(answer any) error {
	return fmt.Errorf("unexpected answer %q of a script", fmt.Sprint(answer))
}
