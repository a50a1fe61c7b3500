package eventstore_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
)

// attempt is an append of three commits with a note, beside a neighbour in the same bucket.
type attempt struct {
	rdb    redis.UniversalClient // may do everything
	store  *eventstore.Store     // may be restricted
	id     es.AggregateID
	before map[string]any
}

// newAttempt stores a neighbour, and what comes before version.
func newAttempt(t *testing.T, rdb redis.UniversalClient, store *eventstore.Store, typ es.AggregateType, version int) attempt {
	t.Helper()
	a := attempt{rdb: rdb, store: store, id: typ.ID("Aa")}
	free := open(rdb, typ)
	_, err := free.Append(t.Context(), es.AppendOptions{Note: true}, commitOf(typ.ID("BB"), 1))
	require.NoError(t, err)
	add(t, free, commitsOf(a.id, 1, version-1)...)
	a.before = traces(t, rdb, a.id)
	return a
}

func (a attempt) run(t *testing.T, version int) error {
	_, err := a.store.Append(t.Context(), es.AppendOptions{Note: true}, commitsOf(a.id, version, 3)...)
	return err
}

func TestSTO04_AKeyOfAnotherTypeLeavesNoTrace(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, version := range []int{1, 3} {
			for _, what := range []string{"stream", "requests", "ids", "outbox"} {
				if version > 1 && what == "ids" {
					continue // it is not looked at
				}
				typ := newType()
				a := newAttempt(t, rdb, open(rdb, typ), typ, version)
				key, aside := keysOf(a.id)[what], "aside"+keysOf(a.id)[what]
				moved := a.before[what] != nil
				if moved {
					require.NoError(t, rdb.Rename(t.Context(), key, aside).Err())
				}
				require.NoError(t, rdb.Set(t.Context(), key, "in the way", 0).Err())
				require.ErrorIs(t, a.run(t, version), es.ErrCorrupt)
				want := maps.Clone(a.before)
				want[what] = "in the way"
				require.Equal(t, want, traces(t, rdb, a.id), "version %d, %s", version, what)

				require.NoError(t, rdb.Del(t.Context(), key).Err())
				if moved {
					require.NoError(t, rdb.Rename(t.Context(), aside, key).Err())
				}
				require.NoError(t, a.run(t, version))
			}
		}
	})
}

func TestSTO04_TombstonesOfAnotherTypeStopOnlyWhatNeedsThem(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	a := newAttempt(t, rdb, open(rdb, typ), typ, 1)
	k := rediskey.EventKeys(a.id)
	require.NoError(t, rdb.Set(t.Context(), k.Purged, "in the way", 0).Err())
	require.NoError(t, a.run(t, 1), "a free id has no tombstone")
	require.NoError(t, rdb.Del(t.Context(), k.Stream, k.Requests).Err())
	before := traces(t, rdb, a.id)
	require.ErrorIs(t, a.run(t, 1), es.ErrCorrupt)
	require.Equal(t, before, traces(t, rdb, a.id))
}

// user is a client that was let in before its rights were taken.
func user(t *testing.T, server *redistest.Server, admin *redis.Client) *redis.Client {
	t.Helper()
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "service", "reset", "on", ">secret", "~*", "&*", "+@all").Err())
	o := server.Options()
	o.Username, o.Password = "service", "secret"
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestSTO04_ADeniedCommandLeavesNoTrace(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"zcard", "zrangebylex", "zcount", "sadd", "zadd"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := redistest.Standalone(t)
			admin := server.Client(t)
			rdb := user(t, server, admin)
			for _, version := range []int{1, 3} {
				typ := newType()
				store := open(rdb, typ)
				require.NoError(t, store.Ready(t.Context(), typ))
				a := newAttempt(t, admin, store, typ, version)
				if version == 1 && command == "zcount" || version > 1 && command == "zrangebylex" {
					continue // it is not used
				}
				require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "service", "-"+command).Err())
				require.Error(t, a.run(t, version))
				require.Equal(t, a.before, traces(t, admin, a.id), "version %d", version)
				require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "service", "+"+command).Err())
				require.NoError(t, a.run(t, version))
			}
		})
	}
}

func TestSTO04_ADeniedKeyLeavesNoTrace(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	admin := server.Client(t)
	rdb := user(t, server, admin)
	typ := newType()
	store := open(rdb, typ)
	require.NoError(t, store.Ready(t.Context(), typ))
	a := newAttempt(t, admin, store, typ, 1)
	keys := keysOf(a.id)
	for denied := range keys {
		rules := []any{"ACL", "SETUSER", "service", "resetkeys"}
		for what, key := range keys {
			if what != denied {
				rules = append(rules, "~"+key)
			}
		}
		require.NoError(t, admin.Do(t.Context(), rules...).Err())
		err := a.run(t, 1)
		require.ErrorContains(t, err, "NOPERM", "without %s", denied)
		require.Equal(t, a.before, traces(t, admin, a.id), fmt.Sprint("without ", denied))
	}
	rules := []any{"ACL", "SETUSER", "service", "resetkeys"}
	for _, key := range keys {
		rules = append(rules, "~"+key)
	}
	require.NoError(t, admin.Do(t.Context(), rules...).Err())
	require.NoError(t, a.run(t, 1), "these keys are all that it needs")
}
