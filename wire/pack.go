package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/headwater-go/headwater/es"
)

// extJSON is the MessagePack extension that holds a body as JSON text: what an upcaster
// made, or a raw body that came from a JSON codec.
const extJSON = 'J'

// packer appends one MessagePack document. The first fault stays in err.
type packer struct{ *writer }

func newPacker(kind byte) packer {
	p := packer{newWriter()}
	p.lit(magic)
	p.b = append(p.b, kind)
	return p
}

func (p packer) array(n int) { p.head(n, 0x90, 15, 0xdc) }
func (p packer) mapOf(n int) { p.head(n, 0x80, 15, 0xde) }

// head writes a length: within the first byte up to most, else behind one of two codes
// that follow each other, for 16 and 32 bits.
func (p packer) head(n int, fixed byte, most int, wide byte) {
	switch {
	case n <= most:
		p.b = append(p.b, fixed|byte(n))
	case n <= math.MaxUint16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, wide), uint16(n))
	default:
		p.b = binary.BigEndian.AppendUint32(append(p.b, wide+1), uint32(n))
	}
}

func (p packer) null() { p.b = append(p.b, 0xc0) }

func (p packer) text(field, s string) {
	if !utf8.ValidString(s) {
		p.fail(field, es.Invalid("%q is not valid UTF-8", s))
	}
	if len(s) > 31 && len(s) <= math.MaxUint8 {
		p.b = append(p.b, 0xd9, byte(len(s)))
	} else {
		p.head(len(s), 0xa0, 31, 0xda)
	}
	p.lit(s)
}

// textUnless writes nil for a text that is as expected.
func (p packer) textUnless(field, s, expected string) {
	if s == expected {
		p.null()
		return
	}
	p.text(field, s)
}

func (p packer) int64(n int64) {
	switch {
	case n >= 0 && n < 0x80:
		p.b = append(p.b, byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xd2), uint32(n))
	default:
		p.b = binary.BigEndian.AppendUint64(append(p.b, 0xd3), uint64(n))
	}
}

func (p packer) integer(field string, n int) {
	if n < math.MinInt32 || n > math.MaxInt32 {
		p.fail(field, es.Invalid("%d is beyond 32 bits", n))
	}
	p.int64(int64(n))
}

func (p packer) time(t time.Time) { p.int64(toMillis(t)) }

func (p packer) flag(v bool) {
	if v {
		p.b = append(p.b, 0xc3)
		return
	}
	p.b = append(p.b, 0xc2)
}

func (p packer) header(h es.Header) {
	p.mapOf(len(h))
	for i := range h {
		p.text("header", h[i].Key)
		p.text("header", h[i].Value)
	}
}

// body writes a body, state or value; what keeps it from being written is the document's fault.
func (p packer) body(field string, body any) {
	if err := p.appendBody(body); err != nil {
		p.fail(field, err)
	}
}

func (p packer) appendBody(body any) error {
	if raw, ok := body.(es.Raw); ok {
		return p.appendRaw(raw)
	}
	v := reflect.ValueOf(body)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return es.Invalid("nil")
	}
	if err := packable(v.Type()); err != nil {
		return err
	}
	start := len(p.b)
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(p.writer)
	enc.SetCustomStructTag("json")
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	if err := enc.Encode(body); err != nil {
		return invalid(err)
	}
	if err := checkTexts(v); err != nil {
		return err
	}
	return checkPacked(p.b[start:])
}

// appendRaw takes JSON text as well as MessagePack. They cannot be confused: the bytes
// that begin JSON are whole numbers in MessagePack, and [unpacker.raw] returns none of
// those that are digits.
func (p packer) appendRaw(raw es.Raw) error {
	if err := checkJSON(raw); errors.Is(err, es.ErrTooLarge) {
		return invalid(err)
	} else if err != nil {
		if err := checkPacked(raw); err != nil {
			return fmt.Errorf("raw bytes that are not JSON, nor else MessagePack: %w", err)
		}
		p.lit(string(raw))
		return nil
	}
	switch n := len(raw); {
	case n <= math.MaxUint8:
		p.b = append(p.b, 0xc7, byte(n))
	case n <= math.MaxUint16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, 0xc8), uint16(n))
	default:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xc9), uint32(n))
	}
	p.b = append(append(p.b, extJSON), raw...)
	return nil
}

// checkPacked is for what was just written: faults are the input's.
func checkPacked(b []byte) error {
	w := walker{b: b}
	if w.walk(maxNesting); w.err == nil && w.pos < len(b) {
		w.err = es.Corrupt("more bytes than one value")
	}
	if w.err != nil {
		return invalid(w.err)
	}
	return nil
}

// decodePacked decodes a checked value into a pointer.
func decodePacked(raw []byte, target any) error {
	if p, ok := target.(*es.Raw); ok {
		*p = rawOf(raw)
		return nil
	}
	if text, ok := jsonIn(raw); ok {
		return decodeJSON(text, target, bodyOptions)
	}
	if err := packable(reflect.TypeOf(target)); err != nil {
		return err
	}
	dec := msgpack.GetDecoder()
	defer msgpack.PutDecoder(dec)
	dec.Reset(bytes.NewReader(raw))
	dec.SetCustomStructTag("json")
	dec.UseLooseInterfaceDecoding(true)
	if err := dec.Decode(target); err != nil {
		return es.Corrupt("%v", err)
	}
	return nil
}
