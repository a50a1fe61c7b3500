package preparekey_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/preparekey"
)

// step is one call of Wow, what it returned, and what was stored then.
type step struct {
	Op     string
	Result json.RawMessage
	After  []struct {
		Key    string
		Fields map[string]string
	}
}

// policy is where house rules differ from what Wow does, on purpose.
type policy struct {
	why    string
	result string
	after  map[string]map[string]string // key to fields
}

var endedA = map[string]map[string]string{"k": {"value": `"a"`, "ttlAt": "1000"}}

var policies = map[string]policy{
	"reprepare on missing key/reprepare(k,b)": {"a free key is not reprepared: uniqueness was not checked", "false", nil},
	"reprepare on missing key/get(k)":         {"so nothing is there", "null", nil},

	"expired: rollback(key,value) deletes/rollback(k,a)": {"what has ended has ended for every operation", "false", endedA},
	"expired: rollback(key,value) deletes/getValue(k)":   {"so it stays until it is swept", `{"value":"a","ttlAt":1000}`, endedA},

	"expired: reprepare revives/reprepare(k,b)":                                {"what has ended has ended", "false", endedA},
	"expired: reprepare revives/get(k)":                                        {"so it is free", "null", endedA},
	"expired: reprepare with old value revives/reprepare(k,old=a,new=b)":       {"what has ended has ended", "false", endedA},
	"expired: reprepare with old value revives/get(k)":                         {"so it is free", "null", endedA},
	"ttl 0 and negative/rollback(j,a)":                                         {"what has ended has ended", "false", map[string]map[string]string{"k": {"value": `"b"`, "ttlAt": forever}, "j": {"value": `"a"`, "ttlAt": "-5"}}},
	"usingPrepare not prepared, failing continuation/usingPrepare(k,a){error}": {"the continuation does not run without the key", "false", map[string]map[string]string{"k": {"value": `"z"`, "ttlAt": forever}}},
}

func TestGoldenSequences(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	require.Len(t, g.Sequences, 24)
	unused := maps.Clone(policies)
	for _, sequence := range g.Sequences {
		t.Run(sequence.What, func(t *testing.T) {
			s := newSequence(t)
			for _, step := range sequence.Steps {
				want := policy{result: string(step.Result), after: map[string]map[string]string{}}
				for _, stored := range step.After {
					want.after[s.keyOf(stored.Key)] = stored.Fields
				}
				if p, ok := policies[sequence.What+"/"+step.Op]; ok {
					require.NotEqual(t, want, p, "no difference to name")
					delete(unused, sequence.What+"/"+step.Op)
					want = p
				}
				s.do(step.Op, want)
			}
		})
	}
	require.Empty(t, unused)
}

type sequence struct {
	t    *testing.T
	rdb  redis.UniversalClient
	keys *preparekey.Keys[string]
	name string
}

func newSequence(t *testing.T) *sequence {
	rdb := redistest.Shared(t).Client(t)
	keys, name := open[string](t, rdb)
	return &sequence{t, rdb, keys, name}
}

// names are the keys of all sequences; Wow's name is "string".
var names = []string{"k", "j", "old", "new", "new2"}

func (s *sequence) keyOf(redisKey string) string {
	for _, key := range names {
		if rediskey.Prepare("string", key) == redisKey {
			return key
		}
	}
	require.Fail(s.t, "unknown key", redisKey)
	return ""
}

var operation = regexp.MustCompile(`^(\w+)\((\w+)(?:,(?:old=([\w-]+),new=)?([\w-]+))?(?: -> (\w+),([\w-]+))?(?:,ttlAt=(-?\d+))?\)(?:\{(.*)\})?$`)

// do carries out one operation, and compares its answer and what is stored then.
func (s *sequence) do(op string, want policy) {
	s.t.Helper()
	m := operation.FindStringSubmatch(op)
	require.NotNil(s.t, m, op)
	if ttlAt := m[7]; ttlAt != "" && time.Until(until(s.t, ttlAt)) < 0 { // only a Kotlin node can do this
		plant(s.t, s.rdb, rediskey.Prepare(s.name, m[2]), encoded(s.t, m[4]), ttlAt)
		s.requireAfter(op, want)
		return
	}
	result, err := s.call(m)
	s.requireResult(op, want, result, err)
	s.requireAfter(op, want)
}

// call carries out an operation that was taken apart.
func (s *sequence) call(m []string) (result any, err error) {
	s.t.Helper()
	ctx, verb, key, old, value, ttlAt := s.t.Context(), m[1], m[2], m[3], m[4], m[7]
	var ttl time.Duration
	if ttlAt != "" {
		ttl = time.Until(until(s.t, ttlAt))
	}
	switch {
	case verb == "prepare":
		return s.keys.Prepare(ctx, key, value, ttl)
	case verb == "reprepare" && old != "":
		return s.keys.ReprepareFrom(ctx, key, old, value, ttl)
	case verb == "reprepare":
		return s.keys.Reprepare(ctx, key, value, ttl)
	case verb == "rollback" && value != "":
		return s.keys.RollbackFrom(ctx, key, value)
	case verb == "rollback":
		return s.keys.Rollback(ctx, key)
	case verb == "get":
		return orNothing(s.keys.Get(ctx, key))
	case verb == "getValue":
		return s.getValue(key)
	case verb == "move":
		return preparekey.Move(ctx, s.keys, key, value, m[5], m[6], ttl)
	case verb == "usingPrepare":
		return preparekey.Using(ctx, s.keys, key, value, 0, func(context.Context) error {
			if m[8] == "error" {
				return errContinuation
			}
			return nil
		})
	}
	require.Fail(s.t, "unknown operation", m[0])
	return nil, nil
}

var errContinuation = errors.New("the continuation failed")

// orNothing is nil where there is no value, as in Wow.
func orNothing[V any](value V, err error) (any, error) {
	if errors.Is(err, es.ErrNotFound) {
		return nil, nil
	}
	return value, err
}

func (s *sequence) getValue(key string) (any, error) {
	prepared, err := s.keys.GetValue(s.t.Context(), key)
	if errors.Is(err, es.ErrNotFound) {
		return nil, nil
	}
	at, _ := strconv.ParseInt(forever, 10, 64)
	if !prepared.Until.IsZero() {
		at = prepared.Until.UnixMilli()
	}
	return struct {
		Value string `json:"value"`
		TTLAt int64  `json:"ttlAt"`
	}{prepared.Value, at}, err
}

// requireResult compares an answer; Wow's exceptions have a kind of ours each.
func (s *sequence) requireResult(op string, want policy, result any, err error) {
	s.t.Helper()
	var thrown struct{ Error struct{ Class string } }
	if json.Unmarshal([]byte(want.result), &thrown) == nil && thrown.Error.Class != "" {
		kind := map[string]error{
			"java.lang.IllegalArgumentException": es.ErrInvalid,
			"java.lang.IllegalStateException":    es.ErrNotFound,
		}[thrown.Error.Class]
		if op == "usingPrepare(k,a){error}" {
			kind = errContinuation
		}
		require.ErrorIs(s.t, err, kind, op)
		return
	}
	require.NoError(s.t, err, op)
	got, err := json.Marshal(result)
	require.NoError(s.t, err)
	s.requireAlmost(op, want.result, string(got))
}

func (s *sequence) requireAfter(op string, want policy) {
	s.t.Helper()
	for _, key := range names {
		stored := fields(s.t, s.rdb, rediskey.Prepare(s.name, key))
		require.Len(s.t, stored, len(want.after[key]), "%s: %s", op, key)
		require.Equal(s.t, want.after[key]["value"], stored["value"], "%s: %s", op, key)
		s.requireAlmost(op, want.after[key]["ttlAt"], stored["ttlAt"])
	}
}

var farOff = regexp.MustCompile(`\b41024448\d{5}\b|\b41024447\d{5}\b`)

// requireAlmost takes the end that Wow was given for the one that a ttl leads to, to the
// minute: the vectors' only finite end that has not passed is 4102444800000.
func (s *sequence) requireAlmost(op, want, got string) {
	s.t.Helper()
	const same = "4102444800000"
	require.Equal(s.t, farOff.ReplaceAllString(want, same), farOff.ReplaceAllString(got, same), op)
	for _, end := range farOff.FindAllString(got, -1) {
		ms, err := strconv.ParseFloat(end, 64)
		require.NoError(s.t, err)
		require.InDelta(s.t, 4102444800000, ms, 60_000)
	}
}
