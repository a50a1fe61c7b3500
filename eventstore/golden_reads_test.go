package eventstore_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/wire"
)

// rawReplies are calls of Wow's append script with chosen arguments.
type rawReplies struct {
	What  string
	Calls []struct {
		Keys  []string
		Args  []string
		Reply struct{ Bulk, Error string }
	}
	Keyspace []goldenKey
}

// read is one read of the vectors: ours, and what is expected of it.
type read struct {
	op     string // as the vectors name it
	ours   func(t *testing.T, s *eventstore.Store) any
	answer any // "" where Wow's own answer is expected
	why    string
}

func load(id string, r es.Versions) func(t *testing.T, s *eventstore.Store) any {
	return func(t *testing.T, s *eventstore.Store) any {
		commits, err := outcome(s.Load(t.Context(), order.ID(id), r))
		if err != nil {
			return nameOf(err)
		}
		versions := []int{}
		for _, c := range commits {
			versions = append(versions, c.Version)
		}
		return versions
	}
}

func nameOf(err error) string {
	for _, kind := range []error{es.ErrVersionConflict, es.ErrDuplicateRequest, es.ErrDuplicateAggregate, es.ErrCorrupt, es.ErrInvalid, es.ErrNotFound} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	if err != nil {
		return err.Error()
	}
	return appended
}

// found is a single commit as the vectors show it.
func found(c es.Commit, err error) any {
	if err != nil {
		return nameOf(err)
	}
	return map[string]any{"version": float64(c.Version), "requestId": c.RequestID, "id": c.ID}
}

func last(id string) func(t *testing.T, s *eventstore.Store) any {
	return func(t *testing.T, s *eventstore.Store) any { return found(s.Last(t.Context(), order.ID(id))) }
}

func hasRequest(id, requestID string) func(t *testing.T, s *eventstore.Store) any {
	return func(t *testing.T, s *eventstore.Store) any {
		known, err := s.HasRequest(t.Context(), order.ID(id), requestID)
		require.NoError(t, err)
		return known
	}
}

// reads are all reads of the vectors, in their order.
var reads = []read{
	{op: "load(order-1, 1, 2147483647)", ours: load("order-1", es.Versions{From: 1, To: es.MaxVersion})},
	{op: "load(order-1, 0, 2)", ours: load("order-1", es.Versions{From: 0, To: 2})},
	{op: "load(order-1, 2, 4)", ours: load("order-1", es.Versions{From: 2, To: 4})},
	{op: "load(order-1, 5, 5)", ours: load("order-1", es.Versions{From: 5, To: 5})},
	{op: "load(order-1, 6, 9)", ours: load("order-1", es.Versions{From: 6, To: 9})},
	{op: "load(order-1, -1, 3)", ours: load("order-1", es.Versions{From: -1, To: 3}), answer: invalid, why: "as Wow: IllegalArgument"},
	{op: "load(order-1, 5, 4)", ours: load("order-1", es.Versions{From: 5, To: 4}), answer: invalid, why: "as Wow: IllegalArgument"},
	{op: "single(order-1, 3)", ours: func(t *testing.T, s *eventstore.Store) any {
		return found(s.Find(t.Context(), order.ID("order-1"), 3))
	}},
	{op: "last(order-1)", ours: last("order-1")},
	{op: "last(missing)", ours: last("missing"), answer: absent, why: "Wow's empty Mono"},
	{op: "load(missing, 1, max)", ours: load("missing", es.Versions{From: 1})},
	{op: "load by event time(order-1, 0, 1700000000000)", ours: func(t *testing.T, s *eventstore.Store) any {
		commits, err := outcome(s.LoadAt(t.Context(), order.ID("order-1"), time.UnixMilli(1_700_000_000_000)))
		require.NoError(t, err)
		return len(commits)
	}, answer: 5, why: "Wow's Redis store does not support it"},
	{op: "existsRequestId(order-1, req-order-1-2)", ours: hasRequest("order-1", "req-order-1-2")},
	{op: "existsRequestId(order-1, nope)", ours: hasRequest("order-1", "nope")},
	{op: "existsRequestId(order-2, req-order-1-2)", ours: hasRequest("order-2", "req-order-1-2")},
	{op: "load(order-1, 1, max)", ours: load("order-1", es.Versions{From: 1}), answer: corrupt, why: "as Wow: a read error"},
	{op: "load(order-1, 1, 1)", ours: load("order-1", es.Versions{From: 1, To: 1})},
	{op: "last(order-1)", ours: last("order-1"), answer: corrupt, why: "as Wow: a read error"},
	{op: "load(order-1, 1, 1)", ours: load("order-1", es.Versions{From: 1, To: 1}), answer: corrupt,
		why: "a document of version 9 at score 1: Wow does not compare them"},
}

func TestWowsReads(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	codec := wire.JSON()
	s := eventstore.New(rdb, codec)
	v := readVectors(t)
	require.Len(t, v.Reads, 3)
	next := 0
	for _, sc := range v.Reads {
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		for _, step := range sc.Steps {
			switch {
			case step.Document != "":
				require.Equal(t, appended, ourAnswer(t, s, codec, step.Document))
				continue
			case step.Setup == "ZADD stream 1 <version 9 document>":
				plantKeys(t, rdb, sc.Keyspace)
				continue
			case step.Setup != "":
				setUp(t, rdb, step.Setup)
				continue
			}
			r := reads[next]
			next++
			require.Equal(t, r.op, step.Op)
			got, want := r.ours(t, s), r.answer
			if want == nil {
				require.NotNil(t, step.Result.OK, r.op)
				text, err := json.Marshal(got)
				require.NoError(t, err)
				require.JSONEq(t, string(step.Result.OK), string(text), r.op)
				continue
			}
			require.Equal(t, want, got, "%s: %s", r.op, r.why)
		}
		requireKeyspace(t, rdb, sc.Keyspace)
	}
	require.Equal(t, len(reads), next)
}

// plantKeys stores the ZSETs of a keyspace.
func plantKeys(t *testing.T, rdb redis.Cmdable, keyspace []goldenKey) {
	t.Helper()
	for _, k := range keyspace {
		var members []scored
		require.NoError(t, json.Unmarshal(k.Members, &members))
		for _, m := range members {
			require.NoError(t, rdb.ZAdd(t.Context(), k.Key, redis.Z{Score: m.Score, Member: m.Member}).Err())
		}
	}
}

// wowsAppend is the contract of Wow's append script, in our own words (spec: KEYS
// stream, ids, requests; ARGV request id, version, document, member, prefix, upper).
func wowsAppend(t testing.TB) *redis.Script {
	t.Helper()
	text, err := os.ReadFile("testdata/reference_append.lua")
	require.NoError(t, err)
	return redis.NewScript(string(text))
}

// The script that stands for Wow's writer in the tests of living together answers as
// Wow's own did.
func TestReferenceAppendAnswersAsWow(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	v := readVectors(t)
	require.Len(t, v.RawReplies, 3)
	for _, raw := range v.RawReplies {
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		for i, call := range raw.Calls {
			args := make([]any, len(call.Args))
			for i := range args {
				args[i] = call.Args[i]
			}
			answer, err := wowsAppend(t).Run(t.Context(), rdb, call.Keys, args...).Text()
			if call.Reply.Error != "" {
				require.ErrorContains(t, err, "arithmetic", "%s, call %d", raw.What, i)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, call.Reply.Bulk, answer, "%s, call %d", raw.What, i)
		}
		requireKeyspace(t, rdb, raw.Keyspace)
	}
}

// The same calls, put to our script.
func TestRawRepliesOfOurAppend(t *testing.T) {
	t.Parallel()
	answers := map[string][]string{
		"append replies": {"ok", "same", "request", "ok", "version",
			"corrupt the same bytes are stored under another version", "aggregate"},
		"append with a fractional or odd version": {"argument", "argument", "argument", "argument", "argument", "argument", "argument"},
		"append: same JSON at another version moves the member's score": {
			"ok", "corrupt the same bytes are stored under another version", "version"},
	}
	rdb := redistest.Standalone(t).Client(t)
	for _, raw := range readVectors(t).RawReplies {
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		var got []string
		for _, call := range raw.Calls {
			stream, ids, requests, member := call.Keys[0], call.Keys[1], call.Keys[2], ""
			keys := []string{stream, requests}
			if call.Args[1] == "1" {
				keys, member = append(keys, ids, "{t}:purged"), call.Args[3]
			}
			answer, err := lua.AppendCommits.Run(t.Context(), rdb, keys, call.Args[1], "", member, call.Args[0], call.Args[2])
			require.NoError(t, err)
			got = append(got, answer.(string))
		}
		require.Equal(t, answers[raw.What], got, raw.What)
		// What was not answered ok left nothing.
		oks := len(slices.DeleteFunc(got, func(answer string) bool { return answer != "ok" }))
		require.EqualValues(t, oks, rdb.ZCard(t.Context(), "{t}:s").Val(), raw.What)
		require.EqualValues(t, oks, rdb.SCard(t.Context(), "{t}:s:req_idx").Val(), raw.What)
	}
}

// wowAppends puts a commit to Wow's writer and returns its answer.
func wowAppends(t *testing.T, rdb redis.UniversalClient, codec es.Codec, c es.Commit) string {
	t.Helper()
	document, err := codec.EncodeCommit(&c)
	require.NoError(t, err)
	k := rediskey.EventKeys(c.Aggregate)
	hex, _, _ := strings.Cut(k.Member, ".")
	answer, err := wowsAppend(t).Run(t.Context(), rdb, []string{k.Stream, k.IDs, k.Requests},
		c.RequestID, c.Version, document, k.Member, hex+".", hex+"/").Text()
	require.NoError(t, err)
	return answer
}
