package wire

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/headwater-go/headwater/es"
)

// toJSON writes a checked MessagePack value as JSON, for upcasters: bytes as base64,
// times as RFC 3339, as encoding/json has them. Other extensions have no JSON.
func toJSON(raw []byte) (es.Raw, error) {
	if text, ok := jsonIn(raw); ok {
		return append(es.Raw(nil), text...), nil
	}
	t := transcoder{walker: walker{b: raw}}
	t.value()
	return t.out, t.err
}

type transcoder struct {
	walker
	out es.Raw
}

func (t *transcoder) value() {
	start := t.pos
	s := t.open()
	switch s.kind {
	case 'n':
		t.out = append(t.out, "null"...)
	case 'b':
		t.out = strconv.AppendBool(t.out, t.b[start] == 0xc3)
	case 'i':
		t.integer(t.b[start], t.take(s.bytes))
	case 'f':
		t.float(t.take(s.bytes))
	case 's':
		t.out, _ = appendText(t.out, string(t.take(s.bytes)))
	case 'y':
		t.out = append(t.out, '"')
		t.out = base64.StdEncoding.AppendEncode(t.out, t.take(s.bytes))
		t.out = append(t.out, '"')
	case 'x':
		t.extension(t.take(s.bytes + 1))
	default:
		t.composite(s)
	}
}

func (t *transcoder) integer(code byte, b []byte) {
	if n, ok := toInteger(code, b); ok {
		t.out = strconv.AppendInt(t.out, n, 10)
		return
	}
	t.out = strconv.AppendUint(t.out, binary.BigEndian.Uint64(b), 10)
}

// float writes the fewest digits that give the number back.
func (t *transcoder) float(b []byte) {
	format, f := byte('f'), toFloat(b)
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	t.out = strconv.AppendFloat(t.out, f, format, -1, len(b)*8)
}

func (t *transcoder) composite(s shape) {
	brackets := "[]"
	if s.kind == 'm' {
		brackets = "{}"
	}
	t.out = append(t.out, brackets[0])
	for i := 0; i < s.values && t.err == nil; i++ {
		if i > 0 {
			t.out = append(t.out, ',')
		}
		if s.kind == 'm' {
			t.key()
			t.out = append(t.out, ':')
		}
		t.value()
	}
	t.out = append(t.out, brackets[1])
}

// key writes a map's key: a text, or an integer as one.
func (t *transcoder) key() {
	switch kind := shapes[t.b[t.pos]].kind; kind {
	case 's':
		t.value()
	case 'i':
		t.out = append(t.out, '"')
		t.value()
		t.out = append(t.out, '"')
	default:
		t.fail("a map's key is neither text nor integer")
	}
}

// extension takes the type and the bytes of a time, in its three sizes.
func (t *transcoder) extension(b []byte) {
	var at time.Time
	switch data := b[1:]; {
	case int8(b[0]) == -1 && len(data) == 4:
		at = time.Unix(int64(binary.BigEndian.Uint32(data)), 0)
	case int8(b[0]) == -1 && len(data) == 8:
		v := binary.BigEndian.Uint64(data)
		at = time.Unix(int64(v&(1<<34-1)), int64(v>>34))
	case int8(b[0]) == -1 && len(data) == 12:
		at = time.Unix(int64(binary.BigEndian.Uint64(data[4:])), int64(binary.BigEndian.Uint32(data)))
	default:
		t.fail("extension %d has no JSON", int8(b[0]))
		return
	}
	t.out = at.UTC().AppendFormat(append(t.out, '"'), time.RFC3339Nano)
	t.out = append(t.out, '"')
}
