package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// label writes itself as text, handle only where it has an address, cipher as bytes.
type (
	label  struct{ s string }
	handle struct{ s string }
	cipher struct{ s string }
)

func (l label) MarshalText() ([]byte, error)     { return []byte(l.s), nil }
func (l *label) UnmarshalText(b []byte) error    { l.s = string(b); return nil }
func (h *handle) MarshalText() ([]byte, error)   { return []byte(h.s), nil }
func (h *handle) UnmarshalText(b []byte) error   { h.s = string(b); return nil }
func (c cipher) MarshalText() ([]byte, error)    { return []byte("cipher"), nil }
func (c cipher) MarshalBinary() ([]byte, error)  { return []byte(c.s), nil }
func (c *cipher) UnmarshalText([]byte) error     { return nil }
func (c *cipher) UnmarshalBinary(b []byte) error { c.s = string(b); return nil }

type tagged struct {
	Label  label           `json:"label"`
	Handle *handle         `json:"handle"`
	Many   []label         `json:"many"`
	By     map[label]label `json:"by"`
	Any    any             `json:"any"`
	Hidden label           `json:"-"`
	Cipher cipher          `json:"cipher"`
	Next   *tagged         `json:"next"`
}

func TestJSON05_TextThatATypeMakesOfItselfIsValidUTF8(t *testing.T) {
	t.Parallel()
	bad := label{"a\xffb"}
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		for what, v := range map[string]any{
			"itself": bad, "a pointer to it": &bad, "in a struct": tagged{Label: bad}, "with an address": tagged{Handle: &handle{bad.s}},
			"in a list": tagged{Many: []label{{"a"}, bad}}, "a map's key": tagged{By: map[label]label{bad: {}}},
			"a map's value": tagged{By: map[label]label{{}: bad}}, "in an any": tagged{Any: bad},
			"in an any's map": map[string]any{"a": []any{1, bad}}, "further on": tagged{Next: &tagged{Label: bad}},
		} {
			_, err := codec.EncodeValue(v)
			require.ErrorIs(t, err, es.ErrInvalid, what)
			require.NotErrorIs(t, err, es.ErrCorrupt, what)
		}
		want := tagged{Label: label{"ä"}, Handle: &handle{""}, Many: []label{{"x"}}, By: map[label]label{{"k"}: {"v"}}, Next: &tagged{}}
		written := want
		written.Hidden = bad
		data, err := codec.EncodeValue(written)
		require.NoError(t, err)
		var got tagged
		require.NoError(t, codec.DecodeValue(data, &got))
		require.Equal(t, want, got)
		_, err = codec.EncodeValue(tagged{Cipher: cipher(bad)})
		require.NoError(t, err, "bytes may be anything")
	})
}
