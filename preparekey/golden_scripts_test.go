package preparekey_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/preparekey"
)

// goldenScripts is what Wow v8.10.10 did, and what its scripts replied when they were
// called directly. The vectors' SHA-1s and the commands inside are those of Wow's own
// script texts. Ours are other texts, so what is held to the vectors is what a caller is
// answered and what is stored then.
type goldenScripts struct {
	Prepare []struct {
		What     string
		Steps    []scriptStep
		Keyspace []storedKey
	}
	RawReplies []struct {
		What     string
		Calls    []rawCall
		Keyspace []storedKey
	}
}

type scriptStep struct {
	Setup, Op string
	Result    struct {
		OK    json.RawMessage
		Error struct{ Class, RedisError string }
	}
}

type storedKey struct {
	Key, Type, Value string
	Fields           map[string]string
}

type rawCall struct {
	Script string
	Args   []string
	Reply  struct {
		Integer int
		Nil     bool
	}
}

func readScripts(t *testing.T) (g goldenScripts) {
	t.Helper()
	data, err := os.ReadFile("testdata/scripts.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &g))
	return g
}

// scenarioPolicies are the answers that differ from Wow's, on purpose.
var scenarioPolicies = map[string]struct{ why, answer string }{
	"every operation once, empty script cache/reprepare(ghost,u-1) on a missing key": {"a free key is not reprepared: uniqueness was not checked", "false"},
	"hash without ttlAt/rollback(alice)":                                             {"half a reservation is neither free nor held", "corrupt"},
	"hash without ttlAt/prepare(alice,u-1)":                                          {"and nobody's to write over", "corrupt"},
}

// keyspacePolicies are what the scenarios leave where those answers differ.
var keyspacePolicies = map[string]map[string]any{
	"every operation once, empty script cache": {},
	"hash without ttlAt":                       {"v2:prepare:{dXNlcm5hbWU.YWxpY2U}": map[string]string{"value": `"a"`}},
}

func TestGoldenScriptScenarios(t *testing.T) {
	t.Parallel()
	scenarios := readScripts(t).Prepare
	require.Len(t, scenarios, 4)
	unused := maps.Clone(scenarioPolicies)
	rdb := redistest.Standalone(t).Client(t) // the name is Wow's
	for _, scenario := range scenarios {
		t.Run(scenario.What, func(t *testing.T) {
			require.NoError(t, rdb.FlushAll(t.Context()).Err())
			require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
			s := &sequence{t, rdb, preparekey.New[string](rdb, codec, "username"), "username"}
			for _, step := range scenario.Steps {
				if step.Setup != "" {
					plantByHand(t, rdb, step.Setup)
					continue
				}
				want := step.wowsAnswer(t)
				if p, ok := scenarioPolicies[scenario.What+"/"+step.Op]; ok {
					require.NotEqual(t, want, p.answer, "no difference to name")
					delete(unused, scenario.What+"/"+step.Op)
					want = p.answer
				}
				m := operation.FindStringSubmatch(step.Op[:strings.Index(step.Op, ")")+1])
				require.NotNil(t, m, step.Op)
				s.requireAlmost(step.Op, want, answerOf(t)(s.call(m)))
			}
			want, ok := keyspacePolicies[scenario.What]
			if !ok {
				want = keyspaceOf(scenario.Keyspace)
			}
			require.Equal(t, want, wholeDatabase(t, rdb))
		})
	}
	require.Empty(t, unused)
}

// wowsAnswer is the JSON of a result, or one word for an exception.
func (s scriptStep) wowsAnswer(t *testing.T) string {
	t.Helper()
	switch {
	case s.Result.OK != nil:
		return string(s.Result.OK)
	case s.Result.Error.Class == "java.lang.IllegalStateException":
		return "not found"
	}
	require.NotEmpty(t, s.Result.Error.RedisError)
	return "corrupt"
}

func answerOf(t *testing.T) func(any, error) string {
	return func(result any, err error) string {
		t.Helper()
		switch {
		case errors.Is(err, es.ErrCorrupt):
			return "corrupt"
		case errors.Is(err, es.ErrNotFound):
			return "not found"
		}
		require.NoError(t, err)
		text, err := json.Marshal(result)
		require.NoError(t, err)
		return string(text)
	}
}

// plantByHand does what the vectors say was done to alice's key beforehand.
func plantByHand(t *testing.T, rdb *redis.Client, setup string) {
	t.Helper()
	var args []any
	for word := range strings.FieldsSeq(setup) {
		if word == "key" {
			word = rediskey.Prepare("username", "alice")
		}
		args = append(args, word)
	}
	require.NoError(t, rdb.Do(t.Context(), args...).Err())
}

func keyspaceOf(stored []storedKey) map[string]any {
	found := map[string]any{}
	for _, k := range stored {
		if found[k.Key] = any(k.Value); k.Type == "hash" {
			found[k.Key] = k.Fields
		}
	}
	return found
}

// wholeDatabase is all that Wow would see: not the tokens of our rollbacks.
func wholeDatabase(t *testing.T, rdb redis.Cmdable) map[string]any {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	found := map[string]any{}
	for _, key := range keys {
		switch kind := rdb.Type(t.Context(), key).Val(); {
		case strings.HasSuffix(key, "}:rolled"):
		case kind == "hash":
			found[key] = fields(t, rdb, key)
		default:
			require.Equal(t, "string", kind, key)
			found[key] = rdb.Get(t.Context(), key).Val()
		}
	}
	return found
}
