package preparekey_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/preparekey"
)

const forever = "148204944000000"

// golden was written by Wow v8.10.10; its sequences are in sequences_test.go.
type golden struct {
	Forever  int64
	Keys     []struct{ Name, Key, RedisKey string }
	Rejected []struct{ NameUTF16, KeyUTF16 []string }
	Values   []struct {
		What, Type, InputBits, ValueBytesHex, ValueOnJdk25 string
		Fields                                             map[string]string
		Get                                                *string
	}
	Sequences []struct {
		What  string
		Steps []step
	}
	Reads []struct {
		What, Type string
		Fields     map[string]string
		GetValue   read
	}
}

// read is what Wow made of a hash.
type read struct {
	Value, Error json.RawMessage
	TTLAt        int64
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	data, err := os.ReadFile("testdata/prepare-keys.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &g))
	return g
}

func TestGoldenKeys(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	require.Len(t, g.Keys, 20)
	require.Equal(t, forever, strconv.FormatInt(g.Forever, 10))
	rdb := redistest.Standalone(t).Client(t) // the names are Wow's
	for _, v := range g.Keys {
		require.Equal(t, v.RedisKey, rediskey.Prepare(v.Name, v.Key))
		isTrue(t)(preparekey.New[string](rdb, codec, v.Name).Prepare(t.Context(), v.Key, v.Key, 0))
		require.Equal(t, map[string]string{"value": encoded(t, v.Key), "ttlAt": forever}, fields(t, rdb, v.RedisKey))
	}
}

func TestGoldenRejected(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	require.Len(t, g.Rejected, 4)
	for _, v := range g.Rejected {
		// A lone surrogate is not text in Go; its three bytes are what comes nearest.
		name, key := loneUTF16(t, v.NameUTF16), loneUTF16(t, v.KeyUTF16)
		keys := preparekey.New[string](redistest.Shared(t).Client(t), codec, name)
		_, err := keys.Prepare(t.Context(), key, "v", 0)
		require.ErrorIs(t, err, es.ErrInvalid, "%q %q", name, key)
		_, err = keys.GetValue(t.Context(), key)
		require.ErrorIs(t, err, es.ErrInvalid)
	}
}

// Username and Address are objects of the vectors.
type Username struct {
	UserID string `json:"userId"`
	At     int64  `json:"at"`
}

type Address struct {
	Street string  `json:"street"`
	Zip    *string `json:"zip"`
}

// notOurs are values that only the JVM can make.
var notOurs = map[string]string{
	"lone high surrogate": "not text in Go",
	"lone low surrogate":  "not text in Go",
	"double NaN":          "a number that JSON does not have, which Wow writes as a text",
	"double +Inf":         "the same",
	"double -Inf":         "the same",
}

func TestGoldenValues(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	require.Len(t, g.Values, 121)
	skipped := 0
	for _, v := range g.Values {
		t.Run(v.What, func(t *testing.T) {
			stored := v.Fields["value"]
			require.True(t, strings.HasPrefix(hex.EncodeToString([]byte(stored)), strings.TrimSuffix(v.ValueBytesHex, "...")))
			if reason, ok := notOurs[v.What]; ok {
				skipped++
				t.Skip(reason)
			}
			if v.ValueOnJdk25 != "" { // the shortest digits, which Go writes as well
				stored = v.ValueOnJdk25
			}
			f := map[string]string{"value": stored, "ttlAt": v.Fields["ttlAt"]}
			held := v.Get != nil
			switch v.Type {
			case "Integer", "Long", "Year":
				checkValue(t, f, held, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
			case "Double":
				bits, err := strconv.ParseUint(v.InputBits, 16, 64)
				require.NoError(t, err)
				checkValue(t, f, held, func(string) (float64, error) { return math.Float64frombits(bits), nil })
			case "Float":
				bits, err := strconv.ParseUint(v.InputBits, 16, 32)
				require.NoError(t, err)
				checkValue(t, f, held, func(string) (float32, error) { return math.Float32frombits(uint32(bits)), nil })
			case "Boolean":
				checkValue(t, f, held, strconv.ParseBool)
			case "Instant":
				checkValue(t, f, held, decode[time.Time])
			case "byte[]":
				checkValue(t, f, held, decode[[]byte])
			case "ArrayList":
				if v.What == "nested list null" {
					checkValue(t, f, held, decode[[]*string])
					return
				}
				checkValue(t, f, held, decode[[]int])
			case "Username":
				checkValue(t, f, held, decode[Username])
			case "Address":
				checkValue(t, f, held, decode[Address])
			case "OrderEmptied":
				checkValue(t, f, held, decode[struct{}])
			case "BigDecimal", "BigInteger", "Rich", "Quirks", "LinkedHashMap":
				// No Go type has their digits or their order; their JSON can be the value.
				checkValue(t, f, held, func(s string) (es.Raw, error) { return es.Raw(s), nil })
			default: // texts, and what is a text in JSON: dates, enums, UUIDs
				checkValue(t, f, held, decode[string])
			}
		})
	}
	require.Equal(t, len(notOurs), skipped)
}

func decode[V any](s string) (v V, err error) { return v, json.Unmarshal([]byte(s), &v) }

// checkValue writes the value of a vector and compares the bytes, and reads what Wow wrote.
func checkValue[V any](t *testing.T, f map[string]string, held bool, parse func(string) (V, error)) {
	t.Helper()
	want, err := parse(f["value"])
	require.NoError(t, err)
	rdb := redistest.Shared(t).Client(t)
	keys, name := open[V](t, rdb)
	isTrue(t)(keys.Prepare(t.Context(), "ours", want, 0))
	require.Equal(t, map[string]string{"value": f["value"], "ttlAt": forever}, fields(t, rdb, rediskey.Prepare(name, "ours")))

	plant(t, rdb, rediskey.Prepare(name, "theirs"), f["value"], f["ttlAt"])
	got, err := keys.GetValue(t.Context(), "theirs")
	require.NoError(t, err)
	require.Equal(t, es.Prepared[V]{Value: want, Until: until(t, f["ttlAt"])}, got)
	_, err = keys.Get(t.Context(), "theirs")
	if !held {
		require.ErrorIs(t, err, es.ErrNotFound)
		return
	}
	require.NoError(t, err)
	isTrue(t)(keys.RollbackFrom(t.Context(), "theirs", want))
}

func until(t *testing.T, ttlAt string) time.Time {
	t.Helper()
	ms, err := strconv.ParseInt(ttlAt, 10, 64)
	require.NoError(t, err)
	if ms >= 148204944000000 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func encoded(t *testing.T, s string) string {
	t.Helper()
	data, err := codec.EncodeValue(s)
	require.NoError(t, err)
	return string(data)
}

// loneUTF16 is text, with each lone surrogate as three bytes.
func loneUTF16(t *testing.T, units []string) string {
	t.Helper()
	var b strings.Builder
	for _, unit := range units {
		u, err := strconv.ParseUint(unit, 16, 16)
		require.NoError(t, err)
		if u < 0x80 {
			b.WriteByte(byte(u))
			continue
		}
		b.Write([]byte{0xE0 | byte(u>>12), 0x80 | byte(u>>6&63), 0x80 | byte(u&63)})
	}
	return b.String()
}
