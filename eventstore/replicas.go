package eventstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// defaultReplicaTimeout is how long replicas are waited for.
const defaultReplicaTimeout = time.Second

func (s *Store) replicaTimeout() time.Duration {
	if s.ReplicaTimeout == 0 {
		return defaultReplicaTimeout
	}
	return max(s.ReplicaTimeout, time.Millisecond) // 0 would be for ever
}

// checkReplicas refuses a client over which the replicas of the key's own master cannot
// be waited for, or that stops listening before the server has stopped waiting.
func (s *Store) checkReplicas() error {
	if s.Replicas <= 0 {
		return nil
	}
	var listens time.Duration
	switch c := s.rdb.(type) {
	case *redis.Client:
		listens = c.Options().ReadTimeout
	case *redis.ClusterClient:
		listens = c.Options().ReadTimeout
	default:
		return es.Invalid("replicas are not waited for over a %T", s.rdb)
	}
	if listens > 0 && s.replicaTimeout() >= listens {
		return es.Invalid("the replica timeout %v is not shorter than the client's read timeout %v", s.replicaTimeout(), listens)
	}
	return nil
}

// replicated runs a script, and right behind it on the same connection, since it counts
// only for that connection's writes, a WAIT: one round trip to the master of the key.
// Where the script wrote and too few replicas say so it is an [es.ErrUnreplicated].
func (s *Store) replicated(ctx context.Context, script lua.Script, keys []string, args []any) (any, error) {
	var replicas *redis.Cmd
	answer, err := do(ctx, s, func() (answer any, err error) {
		master, err := s.master(ctx, keys[0])
		if err != nil {
			return nil, err
		}
		for _, known := range []bool{true, false} {
			var reply *redis.Cmd
			_, _ = master.Pipelined(ctx, func(p redis.Pipeliner) error { // each says what became of it
				reply = script.Queue(ctx, p, known, keys, args...)
				replicas = p.Do(ctx, "WAIT", s.Replicas, s.replicaTimeout().Milliseconds())
				return nil
			})
			if answer, err = reply.Result(); redisrun.Word(err) != "NOSCRIPT" {
				break
			}
		}
		if cluster, ok := s.rdb.(*redis.ClusterClient); ok && err != nil {
			cluster.ReloadState(ctx) // the slot may have moved, or its master died
		}
		return answer, err
	})
	if err != nil || answer != "ok" && answer != "noted" && answer != "published" {
		return answer, err // nothing was written
	}
	if n, err := replicas.Int64(); err != nil {
		return answer, fmt.Errorf("%w: %w", es.ErrUnreplicated, err)
	} else if n < int64(s.Replicas) {
		return answer, fmt.Errorf("%w: %d of %d", es.ErrUnreplicated, n, s.Replicas)
	}
	return answer, nil
}

// confirm waits for the replicas to have what was stored by an earlier call.
func (s *Store) confirm(ctx context.Context, stream string) error {
	answer, err := s.replicated(ctx, lua.TouchStream, []string{stream}, nil)
	if err == nil && answer != "ok" {
		err = es.Corrupt("the commits were there, and are gone")
	}
	return err
}

// master is the node that holds a key.
func (s *Store) master(ctx context.Context, key string) (*redis.Client, error) {
	switch c := s.rdb.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, key)
	}
	return nil, s.checkReplicas()
}
