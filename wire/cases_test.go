package wire_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// The cases JSON-…, as far as a codec is concerned. JSON-08 is in
// TestWhatCannotBeWrittenIsRefused too.

// throughCommit sends a body through a commit and back.
func throughCommit(t *testing.T, codec es.Codec, body any) any {
	t.Helper()
	c := someCommit()
	c.Events = []es.Event{{ID: "e", Name: "anything", Revision: "1", BodyType: "A", Body: body}}
	b, err := codec.EncodeCommit(&c)
	require.NoError(t, err)
	got, err := codec.DecodeCommit(b)
	require.NoError(t, err)
	return got.Events[0].Body
}

func TestJSON01_02_07_08_UserBytesComeBackUnchanged(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		for _, body := range []string{
			`{"items":[],"a":[[],{}]}`, `{"big":123456789012345,"max":9223372036854775807,"min":-9223372036854775808}`,
			`[9007199254740991,9007199254740993]`, `{"z":1,"a":"<b>/\/&'` + "\u2028\u007f" + `"}`, `{"f":1.0,"e":1e3,"d":1.50,"h":1e400}`,
			`3.141592653589793`, `{ "spaced" : [ 1 , 2 ] }`, `{"a":1,"a":2}`, `"text"`, `7`, `-0`, `true`, `{"\u0061":"\u00e9\ud83d\ude00"}`,
		} {
			require.Equal(t, body, string(throughCommit(t, codec, es.Raw(body)).(es.Raw)))
		}
	})
}

type numbers64 struct {
	Min, Max, Over, Under int64
	Any                   any
	Text                  json.Number
	Time                  string
}

func (numbers64) EventName() string { return "numbers" }

func TestJSON02_10_IntegersSurviveInTypedBodies(t *testing.T) {
	t.Parallel()
	types := carts()
	types.Events = []es.Type{{Body: numbers64{}}}
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		n := numbers64{Min: math.MinInt64, Max: math.MaxInt64, Over: 1<<53 + 1, Under: 1<<53 - 1, Any: json.Number("9007199254740993"), Text: "1.50", Time: "</\u2028>&"}
		c := someCommit(n)
		b, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		got, err := codec.DecodeCommit(b)
		require.NoError(t, err)
		body := got.Events[0].Body.(numbers64)
		if s, text := body.Any.(string); text {
			body.Any = json.Number(s) // MessagePack knows no json.Number: it is the text
		}
		require.Equal(t, n, body)
	}, types)
	var v map[string]any
	require.NoError(t, wire.JSON().DecodeValue([]byte(`{"n":9007199254740993}`), &v))
	require.Equal(t, json.Number("9007199254740993"), v["n"])
}

func nestedLists(levels int) es.Raw {
	return es.Raw(strings.Repeat("[", levels) + strings.Repeat("]", levels))
}

type deep struct{ Lists any }

func (deep) EventName() string { return "deep" }

func nest(levels int) any {
	v := []any{}
	for range levels - 1 {
		v = []any{v}
	}
	return v
}

func TestJSON03_NestingHasOneLimit(t *testing.T) {
	t.Parallel()
	types := carts()
	types.Events = []es.Type{{Body: deep{}}}
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		require.Equal(t, nestedLists(512), throughCommit(t, codec, nestedLists(512)))
		c := someCommit(deep{nest(511)})
		b, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		_, err = codec.DecodeCommit(b)
		require.NoError(t, err)
		for _, levels := range []int{512, 513, 999, 1000, 1001, 9999, 10001} {
			for _, body := range []any{deep{nest(levels)}, nestedLists(levels + 1)} {
				c.Events[0].Body = body
				_, err := codec.EncodeCommit(&c)
				require.ErrorIs(t, err, es.ErrTooLarge, levels)
				require.NotErrorIs(t, err, es.ErrCorrupt)
			}
		}
	}, types)
	for _, levels := range []int{513, 1_000_000} {
		doc := commitDoc(`"body":[{"id":"e","name":"x","revision":"1","bodyType":"X","body":` + string(nestedLists(levels)) + `}]`)
		_, err := wire.JSON(types).DecodeCommit(doc)
		require.ErrorIs(t, err, es.ErrCorrupt)
	}
	_, err := wire.MessagePack(types).DecodeCommit([]byte("\xc1HWe" + strings.Repeat("\x91", 10_000_000)))
	require.ErrorIs(t, err, es.ErrCorrupt)
}

// commitDoc is a commit of the shop with the members given after the usual ones.
func commitDoc(members string) []byte {
	return []byte(`{"id":"s-1","contextName":"shop","aggregateName":"cart","header":{},"aggregateId":"1","tenantId":"(0)","commandId":"c","requestId":"r",` +
		`"version":5,"createTime":1,` + members + `}`)
}

const onePaid = `"body":[{"id":"e","name":"paid","revision":"2","body":{"cents":1}}]`

func TestJSON04_LoneSurrogatesAreKeptInRawBytesAndNeverReplaced(t *testing.T) {
	t.Parallel()
	body := es.Raw(`{"name":"\ud800x"}`)
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		require.Equal(t, body, throughCommit(t, codec, body))
		b, err := codec.EncodeValue(body)
		require.NoError(t, err)
		var got es.Raw
		require.NoError(t, codec.DecodeValue(b, &got))
		require.Equal(t, body, got)
	})
	j := wire.JSON(carts())
	for _, members := range []string{
		`"body":[{"id":"e","name":"placed","revision":"0.0.1","body":{"customer":"\ud800x"}}]`, onePaid + `,"ownerId":"\udc00"`, onePaid + `,"header":{"\ud800":"x"}`,
	} {
		_, err := j.DecodeCommit(commitDoc(members))
		require.ErrorIs(t, err, es.ErrCorrupt)
	}
	var s string
	require.ErrorIs(t, j.DecodeValue([]byte(`"\ud800"`), &s), es.ErrCorrupt)
}

func TestJSON05_InvalidUTF8IsCorruptOnReading(t *testing.T) {
	t.Parallel()
	j := wire.JSON(carts())
	for _, members := range []string{
		onePaid + ",\"ownerId\":\"\xff\xfe\"", onePaid + ",\"unknown\":\"\xff\"",
		"\"body\":[{\"id\":\"e\",\"name\":\"x\",\"revision\":\"1\",\"bodyType\":\"X\",\"body\":{\"a\":\"\xff\xfe\"}}]",
	} {
		_, err := j.DecodeCommit(commitDoc(members))
		require.ErrorIs(t, err, es.ErrCorrupt)
	}
	require.ErrorIs(t, j.DecodeValue([]byte("\"\xff\""), new(string)), es.ErrCorrupt)
}

// One might refuse such envelopes. Wow takes the last of equal keys, and a
// key in another case is one it does not know: that is what its vectors say, and they
// decide. Go alone would have let "Version" win over "version".
func TestJSON06_KeysAreMatchedExactlyAndTheLastOneWins(t *testing.T) {
	t.Parallel()
	j := wire.JSON(carts())
	c, err := j.DecodeCommit(commitDoc(onePaid + `,"Version":1,"ID":"b","tenantid":"x"`))
	require.NoError(t, err)
	require.Equal(t, 5, c.Version)
	require.Equal(t, "s-1", c.ID)
	c, err = j.DecodeCommit(commitDoc(onePaid + `,"version":6,"\u0069d":"b","header":{"k":"1"},"header":{"a":"1","b":"2","a":"3"}`))
	require.NoError(t, err)
	require.Equal(t, 6, c.Version)
	require.Equal(t, "b", c.ID)
	require.Equal(t, es.Header{{Key: "a", Value: "3"}, {Key: "b", Value: "2"}}, c.Header)
	c, err = j.DecodeCommit(commitDoc(`"body":[{"id":"e","name":"paid","revision":"2","body":{"cents":1,"Cents":2,"cents":3,"CENTS":4}}]`))
	require.NoError(t, err)
	require.Equal(t, paid{3}, c.Events[0].Body)
}

func TestJSON11_NilAndEmptyListsStayApart(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		for _, state := range []cartState{{}, {Lines: []line{}}, {Lines: []line{{"A", 1, 1}}}} {
			b, err := codec.EncodeSnapshot(&es.Meta{Aggregate: cart.ID("1")}, state)
			require.NoError(t, err)
			var got cartState
			_, err = codec.DecodeSnapshot(b, &got)
			require.NoError(t, err)
			require.Equal(t, state, got)
		}
	})
}

func TestJSON12_WhatIsNoDocumentIsCorrupt(t *testing.T) {
	t.Parallel()
	good := string(commitDoc(onePaid))
	j := wire.JSON(carts())
	_, err := j.DecodeCommit([]byte(good))
	require.NoError(t, err)
	for _, doc := range []string{
		``, ` `, `{"a":1`, good + ` x`, good + good, "\ufeff" + good, `[]`, `"text"`, `null`, `1`, good[:len(good)-1], good + "\x00",
		strings.Replace(good, ",", ",,", 1), strings.Replace(good, `}`, `,}`, 1), strings.Replace(good, `"id"`, `id`, 1),
		strings.Replace(good, `5`, `05`, 1), strings.Replace(good, `5`, `+5`, 1), strings.Replace(good, `5`, `5.`, 1), strings.Replace(good, `5`, `.5`, 1),
		strings.Replace(good, `5`, `5e`, 1), strings.Replace(good, `5`, `NaN`, 1), strings.Replace(good, `5`, `-`, 1), strings.Replace(good, `5`, `nul`, 1),
		strings.Replace(good, `s-1`, `\x`, 1), strings.Replace(good, `s-1`, `\u12g4`, 1), strings.Replace(good, `s-1`, "a\nb", 1), strings.Replace(good, `:`, ``, 1),
		strings.Replace(good, `{"cents":1}`, `{"cents":"5"}`, 1), strings.Replace(good, `{"cents":1}`, `{"cents":1e3}`, 1), strings.Replace(good, `{"cents":1}`, `[]`, 1),
	} {
		_, err := j.DecodeCommit([]byte(doc))
		require.ErrorIs(t, err, es.ErrCorrupt, doc)
		require.NotContains(t, err.Error(), "\n")
	}
	m := wire.MessagePack(carts())
	c := someCommit(somePlaced())
	b, err := m.EncodeCommit(&c)
	require.NoError(t, err)
	for n := 1; n < len(b); n++ {
		_, err := m.DecodeCommit(b[:n])
		require.ErrorIs(t, err, es.ErrCorrupt, n)
	}
	_, err = m.DecodeCommit(append(b, 0xc0))
	require.ErrorIs(t, err, es.ErrCorrupt)
	_, err = m.DecodeCommand(b)
	require.ErrorContains(t, err, "kind")
}

func TestJSON13_ControlCharactersComeBackExactly(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		c := someCommit(placed{Customer: "a\u0000b", Labels: map[string]string{"": "\x1f\x0b\r\n"}})
		c.ID, c.Aggregate.ID, c.Header = "raw\x00nul", "new\nline", es.Header{{Key: "", Value: "\x01"}}
		b, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		got, err := codec.DecodeCommit(b)
		require.NoError(t, err)
		c.Derive()
		c.Events[0].BodyType = "shop.Placed"
		require.Equal(t, c, got)
	})
}
