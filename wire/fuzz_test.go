package wire_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"testing/quick"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// seeds are documents of every kind, by both codecs, and Wow's own.
func seeds(f *testing.F) {
	var m messages
	vectors(f, "messages", &m)
	for i, r := range m.Reading {
		if i%7 == 0 {
			f.Add([]byte(r.Doc))
		}
	}
	types := history()
	for _, codec := range []es.Codec{wire.JSON(types), wire.MessagePack(types)} {
		c, cmd, meta := someCommit(somePlaced(), paid{1}), someCommand(place{"a", []line{{"b", 1, 2}}}), es.Meta{Aggregate: cart.ID("1"), Tags: es.Tags{"a": {"b"}}}
		c.Events = append(c.Events, old("ordered", "1", `{"who":"ann","units":7}`), old("foreign", "1", `[1,2.5,"x",null,{"a":true}]`))
		e := es.StateEvent{Commit: c, State: cartState{}, Tags: meta.Tags}
		for _, encode := range []func() ([]byte, error){
			func() ([]byte, error) { return codec.EncodeCommit(&c) }, func() ([]byte, error) { return codec.EncodeCommand(&cmd) },
			func() ([]byte, error) { return codec.EncodeStateEvent(&e) }, func() ([]byte, error) { return codec.EncodeSnapshot(&meta, cartState{}) },
			func() ([]byte, error) { return codec.EncodeValue(cmd.Body) },
		} {
			b, err := encode()
			require.NoError(f, err)
			f.Add(b)
		}
	}
}

// FuzzDecoders: no bytes make a decoder panic; what is read can be written, and is then
// read as the same.
func FuzzDecoders(f *testing.F) {
	seeds(f)
	codecs := []es.Codec{wire.JSON(history(), orders()), wire.MessagePack(history(), orders())}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, codec := range codecs {
			if c, err := codec.DecodeCommit(data); err == nil && len(c.Events) > 0 {
				again(t, c, func() ([]byte, error) { return codec.EncodeCommit(&c) }, codec.DecodeCommit)
			}
			if c, err := codec.DecodeCommand(data); err == nil {
				again(t, c, func() ([]byte, error) { return codec.EncodeCommand(&c) }, codec.DecodeCommand)
			}
			decodeState := func(b []byte) (es.StateEvent, error) { return codec.DecodeStateEvent(b, nil) }
			if e, err := decodeState(data); err == nil && len(e.Events) > 0 {
				again(t, e, func() ([]byte, error) { return codec.EncodeStateEvent(&e) }, decodeState)
			}
			var state es.Raw
			decodeMeta := func(b []byte) (es.Meta, error) { return codec.DecodeSnapshot(b, &state) }
			if m, err := decodeMeta(data); err == nil && m.Version >= 0 {
				again(t, m, func() ([]byte, error) { return codec.EncodeSnapshot(&m, state) }, decodeMeta)
			}
			var p placed
			if err := codec.DecodeValue(data, &p); err == nil {
				b, err := codec.EncodeValue(p)
				require.NoError(t, err)
				var q placed
				require.NoError(t, codec.DecodeValue(b, &q))
				require.Equal(t, p, q)
			}
		}
	})
}

func again[T any](t *testing.T, v T, encode func() ([]byte, error), decode func([]byte) (T, error)) {
	t.Helper()
	b, err := encode()
	require.NoError(t, err)
	got, err := decode(b)
	require.NoError(t, err, string(b))
	require.Equal(t, v, got)
}

// FuzzRoundTrip: any text in any place comes back, or is refused as invalid.
func FuzzRoundTrip(f *testing.F) {
	f.Add("id", "tenant", "key", "value", "body", int64(1), 1.5)
	f.Add("", "\x00\u2028", "<>&/\\\"", "😀", "\u007f\x1f", int64(math.MinInt64), 1e-7)
	f.Add("\xff", "a", "b", "c", "\xed\xa0\x80", int64(math.MaxInt64), math.MaxFloat64)
	codecs := []es.Codec{wire.JSON(carts()), wire.MessagePack(carts())}
	f.Fuzz(func(t *testing.T, id, tenant, key, value, text string, n int64, rate float64) {
		if math.IsNaN(rate) || math.IsInf(rate, 0) {
			t.Skip("refused; see TestWhatCannotBeWrittenIsRefused")
		}
		for _, codec := range codecs {
			c := someCommit(placed{Customer: text, Total: n, Rate: rate, Labels: map[string]string{key: value}})
			c.ID, c.Aggregate.Tenant, c.Header = id, tenant, es.Header{{Key: key, Value: value}}
			b, err := codec.EncodeCommit(&c)
			if err != nil {
				require.ErrorIs(t, err, es.ErrInvalid)
				require.True(t, anyInvalid(id, tenant, key, value, text), err.Error())
				continue
			}
			require.False(t, anyInvalid(id, tenant, key, value, text))
			got, err := codec.DecodeCommit(b)
			require.NoError(t, err)
			c.Derive()
			c.Events[0].BodyType = "shop.Placed"
			require.Equal(t, c, got)
		}
	})
}

func anyInvalid(texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return !utf8.ValidString(s) })
}

// TestAnyEnvelopeComesBack tries envelopes of every shape that quick thinks of.
func TestAnyEnvelopeComesBack(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		command := func(id, owner, space, request string, expected *int32, create, allow, void bool, header map[string]string, ms int64, l []line) bool {
			c := someCommand(place{owner, l})
			c.ID, c.OwnerID, c.SpaceID, c.RequestID, c.Create, c.AllowCreate, c.Void, c.CreateTime = id, owner, space, request, create, allow, void, at(ms)
			c.BodyType, c.Header = "place", nil
			if expected != nil {
				c.Expected = new(int(*expected))
			}
			for k, v := range header {
				c.Header = append(c.Header, es.HeaderField{Key: k, Value: v})
			}
			b, err := codec.EncodeCommand(&c)
			if err != nil {
				return false
			}
			got, err := codec.DecodeCommand(b)
			c.Digest = got.Digest
			return err == nil && reflect.DeepEqual(c, got)
		}
		require.NoError(t, quick.Check(command, nil))
		snapshot := func(owner, event, first, last, schema string, version int32, a, b, c int64, tags map[string][]string, deleted, open bool) bool {
			m := es.Meta{
				Aggregate: cart.ID("1"), OwnerID: owner, EventID: event, FirstOperator: first, Operator: last, Schema: schema, Version: int(version & math.MaxInt32),
				FirstEventTime: at(a), EventTime: at(b), SnapshotTime: at(c), Tags: tags, Deleted: deleted,
			}
			if len(tags) == 0 {
				m.Tags = nil // no tags are read as none
			}
			doc, err := codec.EncodeSnapshot(&m, cartState{Open: open})
			if err != nil {
				return false
			}
			var state cartState
			got, err := codec.DecodeSnapshot(doc, &state)
			return err == nil && reflect.DeepEqual(m, got) && state.Open == open
		}
		require.NoError(t, quick.Check(snapshot, nil))
	})
}
