package wire_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

type username struct {
	UserID string `json:"userId"`
	At     int64  `json:"at"`
}

type address struct {
	Street string  `json:"street"`
	Zip    *string `json:"zip"`
}

type valueVector struct {
	What, Type, InputBits, ValueOnJdk25 string
	Fields                              struct{ Value string }
}

// foreignValues are JVM types that no Go type stands for; a Go service writes them as
// the text or the raw JSON it wants.
var foreignValues = map[string]bool{
	"Color": true, "LocalDate": true, "LocalTime": true, "LocalDateTime": true, "OffsetDateTime": true, "ZonedDateTime": true,
	"Duration": true, "Period": true, "YearMonth": true, "Year": true, "DayOfWeek": true, "Character": true, "Rich": true, "Quirks": true,
}

// goValue is the Go value that a vector was written from.
func goValue(t *testing.T, v valueVector) any {
	t.Helper()
	bits := func(size int) uint64 {
		n, err := strconv.ParseUint(v.InputBits, 16, size)
		require.NoError(t, err)
		return n
	}
	into := func(p any) { require.NoError(t, json.Unmarshal([]byte(v.Fields.Value), p)) }
	switch v.Type {
	case "String", "UUID":
		var s string
		into(&s)
		return s
	case "Integer":
		var n int32
		into(&n)
		return n
	case "Long":
		var n int64
		into(&n)
		return n
	case "Double":
		return math.Float64frombits(bits(64))
	case "Float":
		return math.Float32frombits(uint32(bits(32)))
	case "BigDecimal":
		return json.Number(v.Fields.Value)
	case "BigInteger":
		n := new(big.Int)
		into(n)
		return n
	case "Boolean":
		return v.Fields.Value == "true"
	case "Instant", "Date":
		var at time.Time
		into(&at)
		return at
	case "byte[]":
		return []byte{0, 1, 255, 127}
	case "Username":
		return username{"u-1", 1700000000000}
	case "Address":
		return address{Street: "s"}
	case "OrderEmptied":
		return struct{}{}
	case "ArrayList":
		return map[string]any{"list": []int{1, 2, 3}, "empty list": []int{}, "nested list null": []any{nil, "x"}}[v.What]
	}
	return nil
}

func TestValuesAreWowsBytes(t *testing.T) {
	t.Parallel()
	var file struct{ Values []valueVector }
	vectors(t, "prepare-keys", &file)
	require.Len(t, file.Values, 121)
	j := wire.JSON()
	for _, v := range file.Values {
		t.Run(v.What, func(t *testing.T) {
			want := []byte(v.Fields.Value)
			switch {
			case foreignValues[v.Type]:
				// Its text comes through as it is, if given as raw JSON.
				b, err := j.EncodeValue(es.Raw(want))
				require.NoError(t, err)
				require.Equal(t, string(want), string(b))
				return
			case v.Type == "LinkedHashMap":
				// A Go map has no order of insertion: its keys are written sorted.
				b, err := j.EncodeValue(map[string]any{"b": 1, "a": 2})
				require.NoError(t, err)
				require.Equal(t, `{"a":2,"b":1}`, string(b))
				return
			case v.Type == "Double" && want[0] == '"':
				// Wow writes NaN and infinity as texts. JSON-08 wants them refused.
				_, err := j.EncodeValue(goValue(t, v))
				require.ErrorIs(t, err, es.ErrInvalid)
				return
			}
			if v.ValueOnJdk25 != "" {
				want = []byte(v.ValueOnJdk25)
			}
			b, err := j.EncodeValue(goValue(t, v))
			require.NoError(t, err)
			require.Equal(t, string(want), string(b))
		})
	}
}

func TestFloatsAreJavas(t *testing.T) {
	t.Parallel()
	var file struct {
		Doubles, Floats []struct{ Bits, Jdk25 string }
	}
	vectors(t, "doubles", &file)
	require.Len(t, file.Doubles, 691)
	require.Len(t, file.Floats, 223)
	j := wire.JSON()
	for _, d := range file.Doubles {
		bits, err := strconv.ParseUint(d.Bits, 16, 64)
		require.NoError(t, err)
		requireFloat(t, j, math.Float64frombits(bits), math.Float64frombits(bits), d.Jdk25)
	}
	for _, f := range file.Floats {
		bits, err := strconv.ParseUint(f.Bits, 16, 32)
		require.NoError(t, err)
		requireFloat(t, j, float64(math.Float32frombits(uint32(bits))), math.Float32frombits(uint32(bits)), f.Jdk25)
	}
}

// requireFloat checks value, which may be a float32, within a struct as well.
func requireFloat(t *testing.T, j es.Codec, f float64, value any, want string) {
	t.Helper()
	b, err := j.EncodeValue(value)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		require.ErrorIs(t, err, es.ErrInvalid)
		return
	}
	require.NoError(t, err)
	require.Equal(t, want, string(b))
	b, err = j.EncodeValue(struct {
		F []any `json:"f"`
	}{[]any{value}})
	require.NoError(t, err)
	require.Equal(t, `{"f":[`+want+`]}`, string(b))
}

func TestValuesAreReadAsWowReadsThem(t *testing.T) {
	t.Parallel()
	var file struct {
		Reads []struct {
			What, Type string
			Fields     struct{ Value *string }
			GetValue   struct {
				Value *string
				Error any
			}
		}
	}
	vectors(t, "prepare-keys", &file)
	require.Len(t, file.Reads, 22)
	// What a Kotlin class makes of its members is not this codec's: no Go type demands
	// a member, or turns texts into numbers, unless it has its own UnmarshalJSON.
	jvm := map[string]bool{
		"object, missing field": true, "object, missing long": true, "object, null long": true,
		"object, long as string": true, "object, long as float": true, "object, string as number": true,
	}
	j := wire.JSON()
	for _, r := range file.Reads {
		t.Run(r.What, func(t *testing.T) {
			if r.Fields.Value == nil || jvm[r.What] || r.What == "no ttlAt" || r.What == "ttlAt with fraction" {
				t.Skip("about ttlAt, an absent value, or the members of a Kotlin class: not this codec's")
			}
			if r.Type == "Username" {
				var u username
				require.NoError(t, j.DecodeValue([]byte(*r.Fields.Value), &u))
				b, err := j.EncodeValue(u)
				require.NoError(t, err)
				require.Equal(t, *r.GetValue.Value, string(b))
				return
			}
			s := "before"
			err := j.DecodeValue([]byte(*r.Fields.Value), &s)
			if r.GetValue.Error != nil {
				require.ErrorIs(t, err, es.ErrCorrupt)
				return
			}
			require.NoError(t, err)
			if r.GetValue.Value == nil { // null is no Go string
				require.Empty(t, s)
				return
			}
			require.Equal(t, *r.GetValue.Value, s)
		})
	}
}

func TestValuesComeBack(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		for _, s := range []string{"", "alice", "a\x00\x1f\"\\/<>&'\u2028\u007f", "雪é😀"} {
			b, err := codec.EncodeValue(s)
			require.NoError(t, err)
			var got string
			require.NoError(t, codec.DecodeValue(b, &got))
			require.Equal(t, s, got)
		}
		b, err := codec.EncodeValue(username{"u", math.MinInt64})
		require.NoError(t, err)
		var u username
		require.NoError(t, codec.DecodeValue(b, &u))
		require.Equal(t, username{"u", math.MinInt64}, u)
		require.ErrorIs(t, codec.DecodeValue(b, new(int)), es.ErrCorrupt)
		require.ErrorIs(t, codec.DecodeValue(append(b, b...), &u), es.ErrCorrupt)
		require.ErrorIs(t, codec.DecodeValue(nil, &u), es.ErrCorrupt)
		_, err = codec.EncodeValue(nil)
		require.ErrorIs(t, err, es.ErrInvalid)
	})
}
