package wire_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// assorted has a member for each thing that MessagePack writes in a way of its own.
type assorted struct {
	Bytes  []byte
	At     []time.Time
	ByInt  map[int8]string
	Uint   uint64
	Ints   []int64
	F32    float32
	F64    []float64
	Long   string
	Many   []int
	Wide   map[string]int
	Any    any
	Hidden string `json:"-"`
	Named  string `json:"j" msgpack:"m"`
}

func (assorted) EventName() string { return "assorted" }

func someAssorted() assorted {
	a := assorted{
		Bytes: []byte{0, 0xff}, ByInt: map[int8]string{-1: "a", 7: "b"}, Uint: math.MaxUint64, F32: 0.1, F64: []float64{0, -0.5, 1e21, 1e-7, 123456789.25},
		Ints: []int64{-1, -32, -33, -129, -32769, math.MinInt32 - 1, 127, 128, 255, 256, 65535, 65536, math.MaxInt32, math.MaxUint32, math.MaxInt64},
		Long: strings.Repeat("x", 70_000), Many: make([]int, 70_000), Wide: map[string]int{}, Any: map[string]any{"n": int64(1)}, Named: "n",
		// 4, 8 and 12 bytes.
		At: []time.Time{time.Unix(1e9, 0).UTC(), time.Unix(1e9, 5e8).UTC(), time.Date(1900, 1, 2, 3, 4, 5, 6e6, time.UTC)},
	}
	for i := range 300 {
		a.Wide[strings.Repeat("k", i)] = i
	}
	return a
}

func assortedTypes(up func(es.RawEvent) ([]es.RawEvent, error)) es.Types {
	types := es.Types{Aggregate: cart, Events: []es.Type{{Body: assorted{}}}}
	if up != nil {
		types.Upcasters = []es.Upcaster{{Event: "assorted", Revision: "0.0.1", Up: up}}
	}
	return types
}

// Upcasters see what encoding/json would have written; passed on as it is, it decodes to
// the very body that was packed.
func TestPackedBodiesAreShownAsJSON(t *testing.T) {
	t.Parallel()
	m := wire.MessagePack(assortedTypes(func(e es.RawEvent) ([]es.RawEvent, error) {
		body := strings.Replace(string(e.Body), `"m":"n"`, `"j":"n"`, 1) // the tags differ by intent
		return []es.RawEvent{{Name: e.Name, Revision: "2", BodyType: e.BodyType, Body: es.Raw(body)}}, nil
	}))
	c := someCommit(someAssorted())
	b, err := m.EncodeCommit(&c)
	require.NoError(t, err)
	got, err := m.DecodeCommit(b)
	require.NoError(t, err)
	body := got.Events[0].Body.(assorted)
	body.Any = someAssorted().Any // a json.Number within
	require.Equal(t, someAssorted(), body)
}

func TestPackedBodiesComeBack(t *testing.T) {
	t.Parallel()
	m := wire.MessagePack(assortedTypes(nil))
	c := someCommit(someAssorted())
	for i := range 20 {
		c.Header = append(c.Header, es.HeaderField{Key: strings.Repeat("h", i), Value: strings.Repeat("v", i*20)})
	}
	b, err := m.EncodeCommit(&c)
	require.NoError(t, err)
	got, err := m.DecodeCommit(b)
	require.NoError(t, err)
	require.Equal(t, c.Header, got.Header)
	body := got.Events[0].Body.(assorted)
	for i, at := range body.At { // the zone is local, the moment the same
		require.True(t, at.Equal(someAssorted().At[i]))
	}
	body.At = someAssorted().At
	require.Equal(t, someAssorted(), body)
}

func TestWhatHasNoJSONIsNotShownToUpcasters(t *testing.T) {
	t.Parallel()
	m := wire.MessagePack(assortedTypes(drop))
	for what, body := range map[string]any{
		"extension": msgpack.RawMessage{0xd4, 9, 1}, "key": map[bool]int{true: 1},
	} {
		raw, err := msgpack.Marshal(body)
		require.NoError(t, err)
		c := oldCommit(es.Event{ID: "e", Name: "assorted", Revision: "0.0.1", BodyType: "x", Body: es.Raw(raw)})
		b, err := m.EncodeCommit(&c)
		require.NoError(t, err)
		_, err = m.DecodeCommit(b)
		require.ErrorIs(t, err, es.ErrCorrupt, what)
	}
}

// A document of a later version of this package may have more members than we know.
func TestMembersThatComeLaterAreSkipped(t *testing.T) {
	t.Parallel()
	m := wire.MessagePack(carts())
	c := someCommand(place{"a", nil})
	b, err := m.EncodeCommand(&c)
	require.NoError(t, err)
	require.Equal(t, byte(0x90|15), b[4])
	later := append([]byte("\xc1HWc\xdc\x00\x11"), b[5:]...) // 17 members
	later = append(later, "\xa5later\x93\x01\x02\x81\xa1a\xc0"...)
	got, err := m.DecodeCommand(later)
	require.NoError(t, err)
	require.Equal(t, c.Body, got.Body)
	_, err = m.DecodeCommand(append([]byte("\xc1HWc\x9e"), b[5:]...)) // 14 are too few
	require.ErrorIs(t, err, es.ErrCorrupt)
}

func TestRawMessagePackKeepsItsBytes(t *testing.T) {
	t.Parallel()
	m := wire.MessagePack(carts())
	for _, body := range []string{"\x81\xa1a\x93\x01\x02\x03", "\xc3", "\xcc7", "\x7f", "\xff", "\xa2{}", "\xcb\x40\x09\x21\xfb\x54\x44\x2d\x18"} {
		require.Equal(t, es.Raw(body), throughCommit(t, m, es.Raw(body)))
	}
	// A stored number that looks like a JSON digit must not become that digit.
	c := someCommit()
	c.Events = []es.Event{{ID: "e", Name: "x", Revision: "1", BodyType: "X", Body: es.Raw("\x7f")}}
	b, err := m.EncodeCommit(&c)
	require.NoError(t, err)
	b[len(b)-1] = '7' // the body is the last member
	got, err := m.DecodeCommit(b)
	require.NoError(t, err)
	b, err = m.EncodeCommit(&got)
	require.NoError(t, err)
	again, err := m.DecodeCommit(b)
	require.NoError(t, err)
	var n int
	require.NoError(t, msgpack.Unmarshal(again.Events[0].Body.(es.Raw), &n))
	require.Equal(t, int('7'), n)
}

func TestNumbersBecomeTextsAsJavasBigDecimalDoes(t *testing.T) {
	t.Parallel()
	j := wire.JSON()
	for number, want := range map[string]string{
		"1.50": "1.50", "1e3": "1E+3", "123e3": "1.23E+5", "0.0000001": "1E-7", "0.000001": "0.000001", "0.00": "0.00", "0e3": "0E+3", "0.0000000": "0E-7",
		"-0": "0", "-0.0": "0.0", "-1.5E-9": "-1.5E-9", "12345.678e2": "1234567.8", "1e-3": "0.001", "12e-2": "0.12", "1E0": "1", "10E-1": "1.0", "-12.5": "-12.5",
		"12345678901234567890.123": "12345678901234567890.123",
	} {
		var s string
		require.NoError(t, j.DecodeValue([]byte(number), &s), number)
		require.Equal(t, want, s)
	}
	require.ErrorIs(t, j.DecodeValue([]byte("1e99999999999"), new(string)), es.ErrCorrupt)
}

func TestIntegersAreTruncatedAndBounded(t *testing.T) {
	t.Parallel()
	j := wire.JSON(carts())
	for number, want := range map[string]int64{
		"5.9": 5, "-5.9": -5, "0.5": 0, "0e99999": 0, "1e3": 1000, "12.5e1": 125, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
		`"+7"`: 7, "1e-400": 0, "99999999999999999.9e1": 999999999999999999, "null": 0,
	} {
		c, err := j.DecodeCommit(commitDoc(onePaid + `,"createTime":` + number))
		require.NoError(t, err, number)
		require.Equal(t, at(want), c.CreateTime)
	}
	for _, number := range []string{"9223372036854775808", "1e19", "1e400", "1e99999999999", `"5.9"`, `" 5"`, `""`, "[]", "true"} {
		_, err := j.DecodeCommit(commitDoc(onePaid + `,"createTime":` + number))
		require.ErrorIs(t, err, es.ErrCorrupt, number)
	}
}
