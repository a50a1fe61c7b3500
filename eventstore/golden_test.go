package eventstore_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

// vectors are what the real Wow did (testdata/wow.json).
type vectors struct {
	Append, Reads []scenario
	RawReplies    []rawReplies
}

type scenario struct {
	What     string
	Steps    []step
	Keyspace []goldenKey
}

type step struct {
	Op       string
	Setup    string
	Document string // what was appended
	Result   struct {
		OK    json.RawMessage
		Error struct {
			ErrorCode  string
			Causes     []string
			RedisError string
		}
	}
}

type goldenKey struct {
	Key, Type string
	Value     string
	Members   json.RawMessage
}

func readVectors(t testing.TB) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/wow.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &v))
	return v
}

var order = es.AggregateType{Context: "order-service", Name: "order"}

// The words below stand for answers; those that need a reason are policies of ours
// where Wow answers otherwise.
const (
	appended  = "appended"
	same      = "the same"
	conflict  = "version conflict"
	request   = "duplicate request"
	aggregate = "duplicate aggregate"
	corrupt   = "corrupt"
	invalid   = "invalid"
	absent    = "not found"
)

// policies are the answers that differ from Wow's, by scenario and step.
var policies = map[string]map[int]struct{ answer, why string }{
	"version conflict wins over duplicate request": {
		2: {request, "promise 1: a known request id is told before a conflict"}},
	"re-append of the same commit, version 1": {
		1: {same, "promise 1: the very same member again is a success"}},
	"re-append of the same commit, version 2": {
		2: {same, "promise 1: the very same member again is a success"}},
	"version 1 conflict, same tenant": {
		1: {conflict, "a conflict at version 1 is a duplicate aggregate only where another tenant holds the id"}},
	"version 0 and negative version": {
		0: {invalid, "STO-08: refused before anything is sent"}, 1: {invalid, "STO-08: refused before anything is sent"}},
	"index entry survives a lost stream": {
		2: {corrupt, "the index holds the very tenant and id, and no commits are there"}},
	"stream key holds another type":  {1: {corrupt, "a key of another type"}},
	"ids key holds another type":     {1: {corrupt, "a key of another type"}},
	"req_idx key holds another type": {1: {corrupt, "a key of another type"}},
	"a member was removed: stream can't be appended to any more": {
		3: {corrupt, "STO-06: count and highest version disagree"},
		4: {corrupt, "STO-06: Wow stores a second commit of version 2 here"}},
}

// wowsAnswer is what Wow answered, in the words above.
func (s step) wowsAnswer() string {
	e := s.Result.Error
	switch {
	case s.Result.OK != nil:
		return appended
	case e.ErrorCode == "EventVersionConflict":
		return conflict
	case e.ErrorCode == "DuplicateRequestId":
		return request
	case e.ErrorCode == "DuplicateAggregateId":
		return aggregate
	}
	return e.RedisError
}

// ourAnswer appends the document that Wow's driver appended.
func ourAnswer(t *testing.T, s *eventstore.Store, codec es.Codec, document string) string {
	t.Helper()
	c, err := codec.DecodeCommit([]byte(document))
	require.NoError(t, err)
	done, err := s.Append(t.Context(), es.AppendOptions{}, c)
	if err == nil && done.Same {
		return same
	}
	return nameOf(err)
}

// setUp does what the driver did between two calls, to the aggregate order-1.
func setUp(t *testing.T, rdb redis.Cmdable, what string) {
	t.Helper()
	k := rediskey.EventKeys(order.ID("order-1"))
	names := map[string]string{"stream": k.Stream, "req_idx": k.Requests, "ids": k.IDs}
	var err error
	switch words := strings.Fields(what); words[0] {
	case "DEL":
		for _, name := range words[1:] {
			if name != "and" {
				err = rdb.Del(t.Context(), names[name]).Err()
			}
		}
	case "SET":
		err = rdb.Set(t.Context(), names[words[1]], words[2], 0).Err()
	case "ZREMRANGEBYRANK":
		err = rdb.ZRemRangeByRank(t.Context(), names[words[1]], 0, 0).Err()
	case "ZADD":
		err = rdb.ZAdd(t.Context(), names[words[1]], redis.Z{Score: 2, Member: words[3]}).Err()
	default:
		t.Fatalf("unknown set-up %q", what)
	}
	require.NoError(t, err)
}

func TestWowsAppendScenarios(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t) // the scenarios share keys, so each begins with none
	codec := wire.JSON()
	v := readVectors(t)
	require.Len(t, v.Append, 24)
	differ := 0
	for _, sc := range v.Append {
		t.Run(sc.What, func(t *testing.T) {
			require.NoError(t, rdb.FlushAll(t.Context()).Err())
			s := eventstore.New(rdb, codec)
			stored := 0
			for i, step := range sc.Steps {
				switch {
				case step.Setup != "":
					setUp(t, rdb, step.Setup)
				case step.Document == "": // the scan of "index entry lost"
					require.Equal(t, "scanAggregateId(order, (0), 10)", step.Op)
					require.Empty(t, collect(t, s.Scan(t.Context(), order, "(0)")))
				default:
					want, why := step.wowsAnswer(), "as Wow"
					if policy, ok := policies[sc.What][i]; ok {
						require.NotEqual(t, want, policy.answer, "no policy is needed where Wow answers the same")
						want, why = policy.answer, policy.why
						differ++
					}
					require.Equal(t, want, ourAnswer(t, s, codec, step.Document), "step %d, %s: %s", i, step.Op, why)
					if want == appended {
						stored++
					}
				}
			}
			requireKeyspace(t, rdb, withoutRefused(t, sc))
		})
	}
	require.Equal(t, 12, differ, "every policy was met")
}

// withoutRefused is the keyspace that Wow left, less the second commit of version 2 that
// we refuse.
func withoutRefused(t *testing.T, sc scenario) []goldenKey {
	t.Helper()
	if !strings.HasPrefix(sc.What, "a member was removed") {
		return sc.Keyspace
	}
	for i, k := range sc.Keyspace {
		if strings.HasSuffix(k.Key, ":ids") {
			continue
		}
		var members []json.RawMessage
		require.NoError(t, json.Unmarshal(k.Members, &members))
		kept := members[:0]
		for _, m := range members {
			if string(m) != `"new"` && !strings.Contains(string(m), `\"requestId\":\"new\"`) {
				kept = append(kept, m)
			}
		}
		require.Len(t, kept, len(members)-1)
		var err error
		sc.Keyspace[i].Members, err = json.Marshal(kept)
		require.NoError(t, err)
	}
	return sc.Keyspace
}

// requireKeyspace compares the whole database, byte for byte.
func requireKeyspace(t *testing.T, rdb redis.Cmdable, want []goldenKey) {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	got, golden := map[string]any{}, map[string]any{}
	for _, key := range keys {
		got[key] = content(t, rdb, key)
	}
	for _, k := range want {
		switch k.Type {
		case "string":
			golden[k.Key] = k.Value
		case "set":
			var members []string
			require.NoError(t, json.Unmarshal(k.Members, &members))
			golden[k.Key] = members
		case "zset":
			var members []scored
			require.NoError(t, json.Unmarshal(k.Members, &members))
			golden[k.Key] = members
		default:
			t.Fatalf("a %s at %s", k.Type, k.Key)
		}
	}
	require.Equal(t, golden, got)
}
