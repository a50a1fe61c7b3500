package eventstore_test

import (
	"context"
	"crypto/rand"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/wire"
)

const (
	eventually = 60 * time.Second
	tick       = 20 * time.Millisecond
)

// newType is an aggregate type that no other test has, so that nothing is flushed.
func newType() es.AggregateType {
	return es.AggregateType{Context: "eventstore", Name: "t" + strings.ToLower(rand.Text()[:12])}
}

// open is a store for one type, and where most tests begin.
func open(rdb redis.UniversalClient, types ...es.AggregateType) *eventstore.Store {
	tables := make([]es.Types, len(types))
	for i := range types {
		tables[i] = estest.TypesOf(types[i])
	}
	return eventstore.New(rdb, wire.JSON(tables...))
}

func commitOf(id es.AggregateID, version int) es.Commit {
	e := es.NewEvent(rand.Text(), estest.Created{Data: "the same every time"})
	e.BodyType = "estest.created"
	c := es.Commit{
		ID: rand.Text(), Aggregate: id, CommandID: rand.Text(), RequestID: rand.Text(), Version: version,
		Events: []es.Event{e}, CreateTime: time.UnixMilli(1_700_000_000_000 + int64(version)).UTC(),
	}
	c.Derive()
	return c
}

func commitsOf(id es.AggregateID, from, n int) []es.Commit {
	commits := make([]es.Commit, n)
	for i := range commits {
		commits[i] = commitOf(id, from+i)
	}
	return commits
}

// add appends each commit by a call of its own.
func add(t testing.TB, s *eventstore.Store, commits ...es.Commit) {
	t.Helper()
	for _, c := range commits {
		_, err := s.Append(t.Context(), es.AppendOptions{}, c)
		require.NoError(t, err)
	}
}

func appendOne(t testing.TB, s *eventstore.Store, c es.Commit) error {
	t.Helper()
	_, err := s.Append(t.Context(), es.AppendOptions{}, c)
	return err
}

func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var items []T
	for item, err := range seq {
		require.NoError(t, err)
		items = append(items, item)
	}
	return items
}

// outcome is what a sequence yields before its error.
func outcome[T any](seq iter.Seq2[T, error]) (items []T, err error) {
	for item, err := range seq {
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}

// requireStored says that exactly these commits are stored.
func requireStored(t testing.TB, s *eventstore.Store, id es.AggregateID, want ...es.Commit) {
	t.Helper()
	require.Equal(t, commitIDs(want), commitIDs(collect(t, s.Load(t.Context(), id, es.Versions{}))))
}

func commitIDs(commits []es.Commit) []string {
	ids := []string{}
	for _, c := range commits {
		ids = append(ids, c.ID)
	}
	return ids
}

func scan(t testing.TB, s *eventstore.Store, typ es.AggregateType) []string {
	t.Helper()
	ids := []string{}
	for _, id := range collect(t, s.Scan(t.Context(), typ, "")) {
		ids = append(ids, id.ID)
	}
	return ids
}

// scored is a member of a ZSET.
type scored struct {
	Score  float64
	Member string
}

// content is what a key holds, in a form that can be compared; nil = nothing.
func content(t testing.TB, rdb redis.Cmdable, key string) any {
	t.Helper()
	ctx := t.Context()
	kind, err := rdb.Type(ctx, key).Result()
	require.NoError(t, err)
	switch kind {
	case "none":
		return nil
	case "string":
		return must(t)(rdb.Get(ctx, key).Result())
	case "hash":
		hash, err := rdb.HGetAll(ctx, key).Result()
		require.NoError(t, err)
		return hash
	case "set":
		members, err := rdb.SMembers(ctx, key).Result()
		require.NoError(t, err)
		slices.Sort(members)
		return members
	case "zset":
		zs, err := rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		require.NoError(t, err)
		members := make([]scored, len(zs))
		for i, z := range zs {
			members[i] = scored{z.Score, z.Member.(string)}
		}
		return members
	}
	t.Fatalf("%s is a %s", key, kind)
	return nil
}

func must(t testing.TB) func(string, error) string {
	return func(s string, err error) string {
		t.Helper()
		require.NoError(t, err)
		return s
	}
}

// keysOf are all keys that an append may touch, by what they hold.
func keysOf(id es.AggregateID) map[string]string {
	k := rediskey.EventKeys(id)
	return map[string]string{"stream": k.Stream, "requests": k.Requests, "ids": k.IDs, "outbox": k.Outbox, "purged": k.Purged}
}

// traces are the contents of all keys of an aggregate.
func traces(t testing.TB, rdb redis.Cmdable, id es.AggregateID) map[string]any {
	t.Helper()
	found := map[string]any{}
	for what, key := range keysOf(id) {
		if c := content(t, rdb, key); c != nil {
			found[what] = c
		}
	}
	return found
}

// together calls f n times at once.
func together(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// within is a context that ends after d, or with the test.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
