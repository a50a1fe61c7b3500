package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/preparekey"
	"github.com/headwater-go/headwater/recovery"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

// profile makes a user as docs/operator.md has it, and returns the URL for it.
func profile(t *testing.T, rdb *redis.Client, url, user string) string {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join(docs, "operator.md"))
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^ACL SETUSER ` + user + ` .*$`).Find(guide)
	require.NotEmpty(t, line)
	var args []any
	for word := range strings.FieldsSeq(string(line)) {
		args = append(args, word)
	}
	require.NoError(t, rdb.Do(t.Context(), args...).Err())
	return strings.Replace(url, "redis://", "redis://"+user+":change-me@", 1)
}

func as(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	require.NoError(t, err)
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTheServiceProfileSuffices(t *testing.T) {
	t.Parallel()
	admin, url := own(t)
	rdb := as(t, profile(t, admin, url, "headwater-service"))
	store := eventstore.New(rdb, wire.JSON())
	require.NoError(t, store.Ready(t.Context(), order))
	id := order.ID("o-1")
	for v := 1; v <= 3; v++ {
		_, err := store.Append(t.Context(), es.AppendOptions{Note: true}, commit(id, v, `{}`))
		require.NoError(t, err)
	}
	_, err := store.FindRequest(t.Context(), id, "req-o-1-2")
	require.NoError(t, err)
	_, err = store.Published(t.Context(), id, 1, 2)
	require.NoError(t, err)
	for _, err := range store.Scan(t.Context(), order, "") {
		require.NoError(t, err)
	}
	plantSnapshot(t, rdb, id, 3)
	_, err = snapshot.New[es.Raw](rdb, wire.JSON(es.Types{Aggregate: order})).Load(t.Context(), id)
	require.NoError(t, err)
	keys := preparekey.New[es.Raw](rdb, wire.JSON(), "name")
	for _, call := range []func() (bool, error){
		func() (bool, error) { return keys.Prepare(t.Context(), "k", es.Raw(`1`), time.Hour) },
		func() (bool, error) { return keys.Reprepare(t.Context(), "k", es.Raw(`2`), 0) },
		func() (bool, error) { return keys.Rollback(t.Context(), "k") },
	} {
		done, err := call()
		require.NoError(t, err)
		require.True(t, done)
	}
	ended(t, admin)
	_, err = keys.Sweep(t.Context())
	require.NoError(t, err)
	carry(t, rdb)
	_, err = recovery.Trim(t.Context(), rdb, topic, recovery.TrimOptions{MaxAge: time.Millisecond})
	require.NoError(t, err)
	_, err = recovery.Reap(t.Context(), rdb, topic, recovery.ReapOptions{})
	require.NoError(t, err)
	require.NoError(t, store.Purge(t.Context(), id, 3, eventstore.PurgeOptions{Tombstone: true}))
	for _, c := range [][]any{{"FLUSHALL"}, {"KEYS", "*"}, {"SET", "somebody", "else"}, {"CONFIG", "GET", "save"}, {"ACL", "LIST"}, {"SHUTDOWN"}} {
		require.ErrorContains(t, rdb.Do(t.Context(), c...).Err(), "NOPERM", c)
	}
}

// carry sends commits, of which the first is handled, and the second becomes a dead letter.
func carry(t *testing.T, rdb *redis.Client) {
	t.Helper()
	bus := eventbus.New(rdb, wire.JSON())
	ctx, cancel := context.WithCancel(t.Context())
	handled, ended := make(chan int, 10), make(chan error)
	sub := es.Subscription{Group: "g", Aggregates: []es.AggregateType{order}, Start: es.FromBeginning}
	require.NoError(t, bus.Prepare(t.Context(), sub))
	go func() {
		ended <- bus.Subscribe(ctx, sub, func(_ context.Context, c es.Commit) error {
			handled <- c.Version
			if c.Version == 2 {
				return es.Permanent(errors.New("never"))
			}
			return nil
		})
	}()
	require.NoError(t, bus.Publish(t.Context(), commit(order.ID("o-2"), 1, `{}`), commit(order.ID("o-2"), 2, `{}`)))
	require.Equal(t, []int{1, 2}, []int{<-handled, <-handled})
	require.Eventually(t, func() bool { return rdb.XLen(t.Context(), rediskey.DeadLetters(topic)).Val() == 1 }, time.Minute, 20*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	letters := recovery.NewDeadLetters(rdb)
	for r, err := range letters.ReplayMany(t.Context(), recovery.LetterFilter{}, 0) {
		require.NoError(t, err)
		require.NoError(t, r.Err)
	}
}

func TestTheReaderProfileSufficesAndChangesNothing(t *testing.T) {
	t.Parallel()
	admin, url := own(t)
	scenery(t, admin, "")
	url = profile(t, admin, url, "headwater-reader")
	env := map[string]string{"REDIS_URL": url}
	for _, args := range append([][]string{{"top", "--once", "--interval", "1ms"}}, reading...) {
		r := runEnv(t, env, args...)
		require.NotContains(t, r.out+r.err, "NOPERM", args)
		require.NotContains(t, r.out, "HW000")
	}
	before := dump(t, admin)
	for _, args := range mending {
		r := runEnv(t, env, append(args, "--yes")...)
		require.Equal(t, 1, r.code, args)
		require.Regexp(t, `NOPERM|can't run this command|no permissions`, r.err, args)
	}
	require.Equal(t, before, dump(t, admin))
	require.ErrorContains(t, as(t, url).Keys(t.Context(), "*").Err(), "NOPERM")
}

// mending are the commands that change something, each possible after the others.
var mending = [][]string{
	{"dlq", "replay", "--all"}, {"snapshot", "drop", "shop.order", "o-1"}, {"outbox", "publish", "shop.order"}, {"prepare", "rollback", "name", "key"},
}

func TestTheOperatorProfileSuffices(t *testing.T) {
	t.Parallel()
	admin, url := own(t, "tcp-keepalive 0")
	scenery(t, admin, "")
	env := map[string]string{"REDIS_URL": profile(t, admin, url, "headwater-operator")}
	for _, args := range reading {
		r := runEnv(t, env, args...)
		require.NotContains(t, r.out+r.err, "NOPERM", args)
	}
	ended(t, admin)
	bury(t, admin, topic, "g", 1, "x")
	for _, args := range append([][]string{
		{"dlq", "replay", "--aggregate", "o-0"}, {"bench", "--seconds", "0.02"}, {"prepare", "sweep", "name"},
	}, mending...) {
		r := runEnv(t, env, append(args, "--yes")...)
		require.Zero(t, r.code, "%v: %s", args, r.err)
	}
	bury2 := runEnv(t, env, "dlq", "discard", "--all", "--yes")
	require.Zero(t, bury2.code, bury2.err)
	flush(t, admin)
	departed(t, admin)
	ended(t, admin)
	fixed := runEnv(t, env, "doctor", "--fix")
	require.NotContains(t, fixed.out, "not fixed")
	require.Contains(t, fixed.out, "set tcp-keepalive 300")
	require.ErrorContains(t, as(t, env["REDIS_URL"]).FlushAll(t.Context()).Err(), "NOPERM")
}
