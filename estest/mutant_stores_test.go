package estest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/memory"
)

type appendFunc = func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error)

// badAppend appends in a way of its own.
type badAppend struct {
	*memory.EventStore
	f appendFunc
}

func (b badAppend) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (es.Appended, error) {
	return b.f(b.EventStore, ctx, o, commits)
}

func appender(caughtBy string, f appendFunc) mutant {
	return eventStore(caughtBy, func(s *memory.EventStore) badAppend { return badAppend{s, f} })
}

// badLoad changes what is loaded; nil drops the commit.
type badLoad struct {
	*memory.EventStore
	f func(c es.Commit) *es.Commit
}

func (b badLoad) Load(ctx context.Context, id es.AggregateID, r es.Versions) iter.Seq2[es.Commit, error] {
	return func(yield func(es.Commit, error) bool) {
		for c, err := range b.EventStore.Load(ctx, id, r) {
			changed := b.f(c)
			if err != nil {
				changed = &c
			}
			if changed != nil && !yield(*changed, err) {
				return
			}
		}
	}
}

func loader(caughtBy string, f func(c es.Commit) *es.Commit) mutant {
	return eventStore(caughtBy, func(s *memory.EventStore) badLoad { return badLoad{s, f} })
}

type scanFunc = func(s *memory.EventStore, ctx context.Context, t es.AggregateType, after string) iter.Seq2[es.AggregateID, error]

type badScanner struct {
	*memory.EventStore
	f scanFunc
}

func (b badScanner) Scan(ctx context.Context, t es.AggregateType, after string) iter.Seq2[es.AggregateID, error] {
	return b.f(b.EventStore, ctx, t, after)
}

type badOutbox struct {
	*memory.EventStore
	append    func(a es.Appended, o es.AppendOptions) es.Appended
	published func(s *memory.EventStore, ctx context.Context, id es.AggregateID, from, through int) (int, error)
}

func (b badOutbox) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (es.Appended, error) {
	done, err := b.EventStore.Append(ctx, o, commits...)
	if b.append != nil && err == nil {
		done = b.append(done, o)
	}
	return done, err
}

func (b badOutbox) Published(ctx context.Context, id es.AggregateID, from, through int) (int, error) {
	if b.published == nil {
		return b.EventStore.Published(ctx, id, from, through)
	}
	return b.published(b.EventStore, ctx, id, from, through)
}

type badSnapshots struct {
	*memory.SnapshotStore[estest.State]
	edit    func(s *es.Snapshot[estest.State])
	replace func(s *memory.SnapshotStore[estest.State], ctx context.Context, old []byte, snapshot es.Snapshot[estest.State]) (bool, error)
}

func (b badSnapshots) Save(ctx context.Context, s es.Snapshot[estest.State]) error {
	if b.edit != nil {
		b.edit(&s)
	}
	return b.SnapshotStore.Save(ctx, s)
}

func (b badSnapshots) Replace(ctx context.Context, old []byte, s es.Snapshot[estest.State]) (bool, error) {
	if b.replace == nil {
		return b.SnapshotStore.Replace(ctx, old, s)
	}
	return b.replace(b.SnapshotStore, ctx, old, s)
}

type badPrepare struct {
	*memory.PrepareKey[string]
	prepare   func(p *memory.PrepareKey[string], ctx context.Context, key, value string, ttl time.Duration) (bool, error)
	reprepare func(p *memory.PrepareKey[string], ctx context.Context, key, value string, ttl time.Duration) (bool, error)
	get       func(p *memory.PrepareKey[string], ctx context.Context, key string) (string, error)
}

func (b badPrepare) Prepare(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	if b.prepare == nil {
		return b.PrepareKey.Prepare(ctx, key, value, ttl)
	}
	return b.prepare(b.PrepareKey, ctx, key, value, ttl)
}

func (b badPrepare) Reprepare(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	if b.reprepare == nil {
		return b.PrepareKey.Reprepare(ctx, key, value, ttl)
	}
	return b.reprepare(b.PrepareKey, ctx, key, value, ttl)
}

func (b badPrepare) Get(ctx context.Context, key string) (string, error) {
	if b.get == nil {
		return b.PrepareKey.Get(ctx, key)
	}
	return b.get(b.PrepareKey, ctx, key)
}

// sortedBy yields the ids of a scan in another order.
func sortedBy(seq iter.Seq2[es.AggregateID, error], less func(a, b es.AggregateID) int) iter.Seq2[es.AggregateID, error] {
	return func(yield func(es.AggregateID, error) bool) {
		var ids []es.AggregateID
		for id, err := range seq {
			if err != nil {
				yield(id, err)
				return
			}
			ids = append(ids, id)
		}
		slices.SortFunc(ids, less)
		for _, id := range ids {
			if !yield(id, nil) {
				return
			}
		}
	}
}

// bare takes the place away from an error.
func bare(err error) error {
	var at *es.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func trimmed(id es.AggregateID) es.AggregateID {
	id.ID = strings.TrimSpace(id.ID)
	return id
}
