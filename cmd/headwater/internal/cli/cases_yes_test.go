package cli_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/cmd/headwater/internal/cli"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/recovery"
)

// slow is an input that never answers.
type slow struct{ ctx context.Context } //nolint:containedctx // it ends with the test

// Read implements [io.Reader].
func (s slow) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, io.EOF }

func TestCLI05_WithoutAYesNothingIsDestroyed(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	scenery(t, rdb, "")
	env := map[string]string{"REDIS_URL": url, "YES": "1", "HEADWATER_YES": "true"}
	destructive := [][]string{
		{"dlq", "discard", "--all"}, {"dlq", "replay", "--all"}, {"snapshot", "drop", "shop.order", "o-1"}, {"outbox", "publish", "shop.order"},
		{"prepare", "rollback", "name", "key"},
	}
	before := dump(t, rdb)
	for _, args := range destructive {
		r := runWith(t.Context(), cli.Environment{In: strings.NewReader("y\n")}, env, args...)
		require.Equal(t, 2, r.code, "a pipe is nobody")
		require.Contains(t, r.err, "--yes")
		for _, answer := range []string{"", "n\n", "\n", "y", "yesterday\n"} {
			r := runWith(t.Context(), cli.Environment{In: strings.NewReader(answer), Interactive: true}, env, args...)
			require.Equal(t, 2, r.code, "%q", answer)
			require.Contains(t, r.err, "nothing was changed")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		r = runWith(ctx, cli.Environment{In: slow{t.Context()}, Interactive: true}, env, args...)
		cancel()
		require.Equal(t, 2, r.code, "Ctrl-C is no")
		require.Equal(t, before, dump(t, rdb))
	}
	for _, args := range destructive {
		asked := runWith(t.Context(), cli.Environment{In: strings.NewReader("")}, env, args...)
		counts, _, _ := strings.Cut(asked.err, "\n")
		r := runWith(t.Context(), cli.Environment{In: strings.NewReader("")}, env, append(args, "--yes")...)
		if args[1] == "replay" {
			require.Zero(t, r.code, "nothing was left to replay")
			continue
		}
		require.Zero(t, r.code, r.err)
		require.Contains(t, r.err, counts, "the same counts as were asked")
	}
}

func dump(t *testing.T, rdb redis.UniversalClient) map[string]string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	all := map[string]string{}
	for _, k := range keys {
		all[k] = rdb.Dump(t.Context(), k).Val()
	}
	return all
}

func TestCLI06_AnInterruptedReplayLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	const all = 300
	topic, group := "shop.order:command", "g"
	require.NoError(t, recovery.Register(t.Context(), rdb, topic))
	for i := range all {
		require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: []string{"msg", fmt.Sprint(i)}}).Err())
	}
	bury(t, rdb, topic, group, all, "x")
	interrupted, told := 0, 0
	for i := 0; rdb.XLen(t.Context(), rediskey.DeadLetters(topic)).Val() > 0; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+5*i)*time.Millisecond)
		r := runWith(ctx, cli.Environment{In: strings.NewReader("")}, map[string]string{"REDIS_URL": url}, "dlq", "replay", "--all", "--yes", "--rate", "2000")
		cancel()
		if r.code != 0 {
			require.Equal(t, 130, r.code, r.err)
			interrupted++
		}
		left, done := rdb.XLen(t.Context(), rediskey.DeadLetters(topic)).Val(), rdb.XLen(t.Context(), rediskey.Retry(topic, group)).Val()
		require.EqualValues(t, all, left+done)
		if r.code != 0 && strings.Contains(r.err, "replayed") {
			require.Contains(t, r.err, fmt.Sprintf(", %d left", left), "the counts")
			told++
		}
	}
	require.Positive(t, interrupted)
	require.Positive(t, told)
	seen := map[string]bool{}
	for _, e := range rdb.XRange(t.Context(), rediskey.Retry(topic, group), "-", "+").Val() {
		own, _, _, err := recovery.ReadRetry(fieldsOf(e))
		require.NoError(t, err)
		msg, _ := own.Get("msg")
		require.False(t, seen[msg], "once")
		seen[msg] = true
	}
	require.Len(t, seen, all)
}

func fieldsOf(e redis.XMessage) recovery.Fields {
	var f recovery.Fields
	for k, v := range e.Values {
		f = append(f, k, fmt.Sprint(v))
	}
	return f
}
