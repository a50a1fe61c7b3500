package wire_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// messages is messages.json. Its "signals" (wait signals, command results) are no
// business of a codec and are not looked at here.
type messages struct {
	Commands []struct {
		What, Msg string
		Input     document
	}
	EventStreams []struct {
		What, Msg, ZsetMember string
		Input                 document
	}
	StateEvents []struct {
		What, Msg string
		Stream    document
		document
	}
	Snapshots []struct {
		What, Value string
		Input       document
	}
	Reading []reading
}

// TestEveryVectorOfWowIsWrittenByteForByte gives the exact JSON of each body and state
// to the codec and wants Wow's document back.
func TestEveryVectorOfWowIsWrittenByteForByte(t *testing.T) {
	t.Parallel()
	var m messages
	vectors(t, "messages", &m)
	j := wire.JSON(orders(), stock())
	require.NotEmpty(t, m.Commands)
	for _, v := range m.Commands {
		t.Run("command "+v.What, func(t *testing.T) {
			c := v.Input.command()
			switch {
			case strings.HasPrefix(v.What, "gateway"), strings.HasPrefix(v.What, "LocalFirst"):
				// Wow's gateway and LocalFirst bus added headers to the input: take them from the message.
				c.Header = headerOf(t, v.Msg)
			case v.What == "lone surrogate in body": // the JVM wrote a question mark for it
				c.Body = es.Raw(`{"note":"a?b"}`)
			}
			b, err := j.EncodeCommand(&c)
			require.NoError(t, err)
			require.Equal(t, v.Msg, string(b))
		})
	}
	for _, v := range m.EventStreams {
		t.Run("event stream "+v.What, func(t *testing.T) {
			c := v.Input.commit()
			b, err := j.EncodeCommit(&c)
			require.NoError(t, err)
			require.Equal(t, v.Msg, string(b))
			if v.ZsetMember != "" { // one vector was never stored
				require.Equal(t, v.ZsetMember, string(b))
			}
		})
	}
	for _, v := range m.StateEvents {
		t.Run("state event "+v.What, func(t *testing.T) {
			e := es.StateEvent{
				Commit: v.Stream.commit(), FirstOperator: v.FirstOperator, FirstEventTime: at(v.FirstEventTime),
				State: es.Raw(v.StateRaw), Tags: v.Tags, Deleted: v.Deleted,
			}
			b, err := j.EncodeStateEvent(&e)
			require.NoError(t, err)
			require.Equal(t, tagsInOrder(v.Msg), string(b))
		})
	}
	for _, v := range m.Snapshots {
		t.Run("snapshot "+v.What, func(t *testing.T) {
			meta := v.Input.meta()
			b, err := j.EncodeSnapshot(&meta, es.Raw(v.Input.StateRaw))
			require.NoError(t, err)
			require.Equal(t, tagsInOrder(v.Value), string(b))
		})
	}
}

// headerOf reads a message's header in its order.
func headerOf(t *testing.T, msg string) (h es.Header) {
	t.Helper()
	var m struct{ Header json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(msg), &m))
	d := json.NewDecoder(bytes.NewReader(m.Header))
	_, err := d.Token()
	require.NoError(t, err)
	for d.More() {
		key, err := d.Token()
		require.NoError(t, err)
		value, err := d.Token()
		require.NoError(t, err)
		h = append(h, es.HeaderField{Key: key.(string), Value: value.(string)})
	}
	return h
}

// tagsInOrder: es.Tags is a map, so the codec writes tags by name, whereas Wow keeps
// the order of insertion. The vectors have one case of it.
func tagsInOrder(doc string) string {
	return strings.Replace(doc, `"tags":{"role":["admin","*"],"dept":[]},"deleted"`, `"tags":{"dept":[],"role":["admin","*"]},"deleted"`, 1)
}

// TestEveryVectorOfWowIsReadBack reads Wow's documents with typed bodies and writes the
// same bytes again, wherever the body is one of the test's types.
func TestEveryVectorOfWowIsReadBack(t *testing.T) {
	t.Parallel()
	var m messages
	vectors(t, "messages", &m)
	j := wire.JSON(orders(), stock(), es.Types{Aggregate: es.AggregateType{Context: "wow-tck", Alias: "tck", Name: "mock_aggregate"}})
	for _, v := range m.EventStreams {
		t.Run("event stream "+v.What, func(t *testing.T) {
			c, err := j.DecodeCommit([]byte(v.Msg))
			require.NoError(t, err)
			want := v.Input.commit()
			require.Equal(t, want.Header, c.Header)
			require.Equal(t, want.Aggregate, c.Aggregate)
			for i, e := range v.Input.Events {
				got := c.Events[i]
				require.Equal(t, e.Sequence, got.Sequence)
				require.Equal(t, e.IsLast, got.Last)
				requireBody(t, e.BodyRaw, got.Body)
			}
			b, err := j.EncodeCommit(&c)
			require.NoError(t, err)
			require.JSONEq(t, v.Msg, string(b))
		})
	}
	for _, v := range m.StateEvents {
		t.Run("state event "+v.What, func(t *testing.T) {
			e, err := j.DecodeStateEvent([]byte(v.Msg), nil)
			require.NoError(t, err)
			require.Equal(t, es.Raw(v.StateRaw), e.State)
			b, err := j.EncodeStateEvent(&e)
			require.NoError(t, err)
			require.JSONEq(t, v.Msg, string(b))
		})
	}
	for _, v := range m.Snapshots {
		t.Run("snapshot "+v.What, func(t *testing.T) {
			var state es.Raw
			meta, err := j.DecodeSnapshot([]byte(v.Value), &state)
			require.NoError(t, err)
			require.Equal(t, v.Input.StateRaw, string(state))
			b, err := j.EncodeSnapshot(&meta, state)
			require.NoError(t, err)
			require.Equal(t, tagsInOrder(v.Value), string(b))
		})
	}
}

// requireBody compares a decoded body with the JSON that Wow holds for it.
func requireBody(t *testing.T, want string, body any) {
	t.Helper()
	b, raw := body.(es.Raw)
	if !raw {
		var err error
		b, err = json.Marshal(body)
		require.NoError(t, err)
	}
	require.Equal(t, exact(t, []byte(want)), exact(t, b), "%s against %s", want, b)
}

// exact decodes JSON; numbers are equal if they are so as numbers, to the last digit.
func exact(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return numbers(v)
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		r, ok := new(big.Rat).SetString(v.String())
		if !ok {
			panic(v)
		}
		return r.RatString()
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}
