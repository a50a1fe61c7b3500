package eventstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// Append implements [es.Appender]. Before the first append to a type it does what
// [Store.Ready] does, and fails where that fails. Over [MaxBatch] commits, or over
// MaxBytes in one of them or [MaxBatchBytes] in all, it is an [es.ErrTooLarge].
func (s *Store) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (es.Appended, error) {
	if len(commits) == 0 {
		return es.Appended{}, fail("append", es.AggregateID{}, 0, "", es.Invalid("no commits"))
	}
	first := &commits[0]
	appended, err := s.append(ctx, o, commits)
	if err != nil {
		return appended, fail("append", first.Aggregate, first.Version, first.RequestID, err)
	}
	return appended, nil
}

func (s *Store) append(ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
	if err := checkBatch(commits); err != nil {
		return es.Appended{}, err
	}
	first := &commits[0]
	key := rediskey.EventKeys(first.Aggregate)
	keys := append(make([]string, 0, 7), key.Stream, key.Requests)
	args := append(make([]any, 0, 4+2*len(commits)), strconv.Itoa(first.Version), "", "")
	if o.Note {
		keys = append(keys, key.Outbox)
		args[1] = key.Identity
	}
	if first.Version == 1 {
		keys = append(keys, key.IDs, key.Purged)
		args[2] = key.Member
	}
	size := 0
	for i := range commits {
		data, err := s.encode(&commits[i])
		if err != nil {
			return es.Appended{}, fail("append", first.Aggregate, commits[i].Version, commits[i].RequestID, err)
		}
		if size += len(data); size > MaxBatchBytes {
			return es.Appended{}, fmt.Errorf("%w: the commits have over %d bytes together", es.ErrTooLarge, MaxBatchBytes)
		}
		args = append(args, commits[i].RequestID, data)
	}
	if err := s.guard(ctx, first.Aggregate.Type); err != nil {
		return es.Appended{}, err
	}
	topics, state := s.topics(o, commits, size)
	answer, err := s.run(ctx, append(keys, topics...), append(args, state...))
	if len(topics) > 0 && redisrun.Word(err) == "CROSSSLOT" { // a cluster after all; nothing was done
		s.apart.Store(true)
		answer, err = s.run(ctx, keys, args)
	}
	if err != nil {
		return es.Appended{}, err
	}
	appended, err := read(answer, o)
	if err == nil && appended.Same && s.Replicas > 0 {
		if err := s.confirm(ctx, key.Stream); err != nil {
			return es.Appended{}, err
		}
	}
	return appended, err
}

// topics are the streams to which the script publishes a commit of size bytes, and what
// it needs for that; none where it shall not, or where the buses would refuse it.
func (s *Store) topics(o es.AppendOptions, commits []es.Commit, size int) (keys []string, args []any) {
	if !s.Publish || !o.Note || len(commits) > 1 || size > DefaultMaxBytes || s.apart.Load() {
		return nil, nil
	}
	if _, cluster := s.rdb.(*redis.ClusterClient); cluster {
		return nil, nil
	}
	t := commits[0].Aggregate.Type
	keys = append(keys, rediskey.Event(t))
	if o.State != nil {
		data, err := s.codec.EncodeStateEvent(o.State)
		if err != nil || len(data) > DefaultMaxBytes {
			return nil, nil // its publisher says what is wrong with it
		}
		keys, args = append(keys, rediskey.State(t)), append(args, data)
	}
	return keys, args
}

func (s *Store) run(ctx context.Context, keys []string, args []any) (any, error) {
	if s.Replicas > 0 {
		return s.replicated(ctx, lua.AppendCommits, keys, args)
	}
	return do(ctx, s, func() (any, error) { return lua.AppendCommits.Run(ctx, s.rdb, keys, args...) })
}

func (s *Store) encode(c *es.Commit) ([]byte, error) {
	data, err := s.codec.EncodeCommit(c)
	if err != nil {
		return nil, err
	}
	limit := s.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	if len(data) > limit {
		return nil, fmt.Errorf("%w: commit has %d bytes, more than %d", es.ErrTooLarge, len(data), limit)
	}
	return data, nil
}

// checkBatch refuses what could not be stored as it is, before anything is sent.
func checkBatch(commits []es.Commit) error {
	if len(commits) > MaxBatch {
		return fmt.Errorf("%w: %d commits in one call, more than %d", es.ErrTooLarge, len(commits), MaxBatch)
	}
	first := &commits[0]
	for i := range commits {
		c := &commits[i]
		if err := c.Validate(); err != nil {
			return err
		}
		if c.Aggregate != first.Aggregate {
			return es.Invalid("commit %d is of %s, the first of %s", i+1, c.Aggregate, first.Aggregate)
		}
		if c.Version != first.Version+i {
			return es.Invalid("version %d follows version %d", c.Version, first.Version+i-1)
		}
	}
	if len(commits) == 1 {
		return nil
	}
	ids, requests := make(map[string]bool, len(commits)), make(map[string]bool, len(commits))
	for i := range commits {
		c := &commits[i]
		if ids[c.ID] || requests[c.RequestID] {
			return es.Invalid("two commits have the id %q or the request id %q", c.ID, c.RequestID)
		}
		ids[c.ID], requests[c.RequestID] = true, true
	}
	return nil
}

// read translates the script's answer.
func read(answer any, o es.AppendOptions) (es.Appended, error) {
	word, _ := answer.(string)
	switch word {
	case "ok":
		return es.Appended{Publish: o.Note}, nil
	case "published":
		return es.Appended{Published: true}, nil
	case "noted":
		return es.Appended{}, nil
	case "same":
		return es.Appended{Same: true}, nil
	case "same-ok":
		return es.Appended{Same: true, Publish: true}, nil
	case "request":
		return es.Appended{}, es.ErrDuplicateRequest
	case "aggregate":
		return es.Appended{}, fmt.Errorf("%w: another tenant holds the id", es.ErrDuplicateAggregate)
	case "purged":
		return es.Appended{}, fmt.Errorf("%w: the id was purged", es.ErrDuplicateAggregate)
	case "version":
		return es.Appended{}, es.ErrVersionConflict
	}
	if reason, ok := strings.CutPrefix(word, "corrupt "); ok {
		return es.Appended{}, es.Corrupt("%s", reason)
	}
	return es.Appended{}, unexpected(answer)
}
