package recovery

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/lua"
)

// Fail counts a failure of an entry that this consumer owns, for the whole group, and
// returns how often it has failed and when it did so first, by the server's clock. An
// entry that is another's by now is an [ErrNotOwner], and nothing is counted; neither is
// it while the server's memory is full.
func (g *Group) Fail(ctx context.Context, stream, id string, cause error) (count int, first time.Time, err error) {
	keys := []string{stream, rediskey.Failed(g.Topic, g.Name)}
	reply, err := g.run(ctx, lua.FailEntry, keys,
		g.Name, g.Consumer, id, g.failure(stream, id), rand.Text(), errorText(cause))
	if err == nil && reply == "not owner" {
		err = ErrNotOwner
	}
	if err != nil {
		return 0, time.Time{}, g.fail("count a failure of "+id+" by", err)
	}
	numbers, _ := reply.([]any)
	if len(numbers) == 2 {
		n, isCount := numbers[0].(int64)
		ms, isTime := numbers[1].(int64)
		if isCount && isTime {
			return int(n), time.UnixMilli(ms).UTC(), nil
		}
	}
	return 0, time.Time{}, g.fail("count a failure of "+id+" by", unexpected(reply))
}

// Bury writes a dead letter of an entry that this consumer owns, acknowledges the entry
// and forgets its failures, all or nothing: while the letter cannot be written, the
// entry stays pending. An entry that is another's by now is an [ErrNotOwner].
//
// Reason, Error, Attempts and Aggregate are the caller's; Replays and Origin too where
// the record is gone. The record's fields are copied by the server, so Fields are sent
// only where the stream no longer holds it. Bury knows the others.
//
// Where functions failed, each gets a letter of its own with its Function, its error (or
// l.Error, where there is none), and the reason Permanent where that is so of it.
func (g *Group) Bury(ctx context.Context, stream, id string, l Letter, failed ...es.FunctionFailure) error {
	keys := []string{stream, rediskey.Failed(g.Topic, g.Name), rediskey.DeadLetters(g.Topic)}
	origin := l.Origin
	if origin == "" {
		origin = id
	}
	const given = 10
	args := []any{
		g.Name, g.Consumer, id, g.failurePrefix(stream), string(l.Reason), boundText(l.Error),
		strconv.Itoa(l.Attempts), l.Aggregate, strconv.Itoa(l.Replays), origin, "", len(failed),
	}
	for _, f := range failed {
		reason, text := l.Reason, boundText(l.Error)
		if f.Err != nil {
			text = errorText(f.Err)
		}
		if es.IsPermanent(f.Err) {
			reason = Permanent
		}
		args = append(args, f.Function.Context, f.Function.Processor, f.Function.Name, string(reason), text)
	}
	reply, err := g.run(ctx, lua.BuryEntry, keys, args...)
	if err == nil && reply == "gone" {
		args[given] = "given"
		for _, text := range wrap(l.Fields) {
			args = append(args, text)
		}
		reply, err = g.run(ctx, lua.BuryEntry, keys, args...)
	}
	switch {
	case err != nil:
	case reply == "not owner":
		err = ErrNotOwner
	case reply != "buried":
		err = unexpected(reply)
	}
	return g.fail("bury "+id+" by", err)
}

// errorText is what is kept of an error.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return boundText(err.Error())
}

// boundText is s in valid UTF-8 of at most [MaxErrorBytes].
func boundText(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), MaxErrorBytes+utf8.UTFMax)], "\uFFFD")
	if len(s) <= MaxErrorBytes {
		return s
	}
	end := MaxErrorBytes
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// readFailures reads what lua/fail_entry.lua has written: "<count> <first ms> <last ms>
// <token> <error>".
func readFailures(text string) (count int, first time.Time, cause string) {
	parts := strings.SplitN(text, " ", 5)
	if len(parts) < 5 {
		return 0, time.Time{}, ""
	}
	n, errCount := strconv.Atoi(parts[0])
	ms, errFirst := strconv.ParseInt(parts[1], 10, 64)
	if errCount != nil || errFirst != nil {
		return 0, time.Time{}, ""
	}
	return n, time.UnixMilli(ms).UTC(), parts[4]
}

// forgetFailures looks at some failures and drops those of entries that are no longer
// pending, which somebody else acknowledged.
func (s *sweep) forgetFailures(ctx context.Context) error {
	const some = 20
	key := rediskey.Failed(s.Topic, s.Name)
	var next uint64
	pairs, err := do(ctx, s.Group, func() (pairs []string, err error) {
		pairs, next, err = s.rdb.HScan(ctx, key, s.failures, "", some).Result()
		return pairs, err
	})
	if err != nil {
		return err
	}
	s.failures = next
	var fields, ids []string
	for pair := range slices.Chunk(pairs, 2) {
		id, ok := strings.CutPrefix(pair[0], s.failurePrefix(s.stream))
		if _, err := parseID(id); ok && err == nil { // else it belongs to the other stream
			fields, ids = append(fields, pair[0]), append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	pending := make([]*redis.XPendingExtCmd, len(ids))
	_, err = do(ctx, s.Group, func() ([]redis.Cmder, error) {
		return s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range ids {
				pending[i] = p.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: s.stream, Group: s.Name, Start: id, End: id, Count: 1})
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	var stale []string
	for i, p := range pending {
		if len(p.Val()) == 0 {
			stale = append(stale, fields[i])
		}
	}
	if len(stale) == 0 {
		return nil
	}
	_, err = do(ctx, s.Group, func() (int64, error) { return s.rdb.HDel(ctx, key, stale...).Result() })
	return err
}
