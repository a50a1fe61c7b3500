package wire

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/headwater-go/headwater/es"
)

// valueOptions write what Jackson writes, as far as Go types have a counterpart: values
// of prepare keys are compared as bytes.
var valueOptions = json.JoinOptions(bodyOptions, json.WithMarshalers(json.JoinMarshalers(
	json.MarshalToFunc(writeNumber), json.MarshalToFunc(writeDouble), json.MarshalToFunc(writeFloat),
	json.MarshalToFunc(writeText), json.MarshalToFunc(writeInstant),
)))

func writeDouble(enc *jsontext.Encoder, f float64) error { return writeJavaFloat(enc, f, 64) }
func writeFloat(enc *jsontext.Encoder, f float32) error  { return writeJavaFloat(enc, float64(f), 32) }

func writeJavaFloat(enc *jsontext.Encoder, f float64, bits int) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return es.Invalid("%v is no JSON number", f)
	}
	return enc.WriteValue(appendJavaFloat(nil, f, bits))
}

func writeText(enc *jsontext.Encoder, s string) error {
	b, ok := appendText(nil, s)
	if !ok {
		return es.Invalid("%q is not valid UTF-8", s)
	}
	return enc.WriteValue(b)
}

// writeInstant writes 0, 3, 6 or 9 digits of a second, in UTC.
func writeInstant(enc *jsontext.Encoder, t time.Time) error {
	layout := "2006-01-02T15:04:05"
	switch ns := t.Nanosecond(); {
	case ns == 0:
	case ns%1e6 == 0:
		layout += ".000"
	case ns%1e3 == 0:
		layout += ".000000"
	default:
		layout += ".000000000"
	}
	return enc.WriteValue([]byte(t.UTC().Format(`"` + layout + `Z"`)))
}

// EncodeValue implements [es.Codec]. Texts, numbers, times and objects of them come out
// in the very bytes of Wow on JDK 19 or newer (older ones write some floats with more
// digits), given that the fields of a struct stand in the order that Wow writes them. A
// type with methods of its own for JSON is written by them.
func (j *JSONCodec) EncodeValue(v any) ([]byte, error) {
	w := newWriter()
	if err := w.appendWith(v, valueOptions); err != nil {
		w.fail("value", err)
	}
	return w.done("prepare key")
}

// DecodeValue implements [es.Codec]. As in Wow, a number or truth becomes a text where v
// is a *string, and null the zero value.
func (j *JSONCodec) DecodeValue(data []byte, v any) error {
	if isPacked(data) {
		return fmt.Errorf("prepare key: value: %w: it begins like MessagePack", es.ErrWrongFormat)
	}
	if s, ok := v.(*string); ok {
		var r reader
		r.data = data
		if err := checkJSON(data); err != nil {
			return fmt.Errorf("prepare key: value: %w", err)
		}
		t := r.value()
		if *s = r.toText(fieldBody, t); r.err != nil {
			return es.Corrupt("prepare key: value is no text")
		}
		return nil
	}
	if _, raw := v.(*es.Raw); raw {
		if err := checkJSON(data); err != nil {
			return fmt.Errorf("prepare key: value: %w", err)
		}
	}
	if err := decodeJSON(data, v, bodyOptions); err != nil {
		return fmt.Errorf("prepare key: value: %w", err)
	}
	return nil
}

// appendJavaFloat writes f as Java's Double.toString or Float.toString does, with the
// fewest digits that give f back (JDK 19 and newer).
func appendJavaFloat(b []byte, f float64, bits int) []byte {
	if f == 0 {
		if math.Signbit(f) {
			b = append(b, '-')
		}
		return append(b, "0.0"...)
	}
	if abs := math.Abs(f); abs >= 1e-3 && abs < 1e7 {
		return withFraction(strconv.AppendFloat(b, f, 'f', -1, bits), len(b))
	}
	digits := strconv.AppendFloat(nil, f, 'e', -1, bits)
	if !bytes.Contains(digits, []byte(".")) { // Java takes the nearest of two digits: 4.9E-324, not 5.0E-324
		digits = strconv.AppendFloat(nil, f, 'e', 1, bits)
	}
	mantissa, exponent, _ := bytes.Cut(digits, []byte("e"))
	b = append(withFraction(append(b, mantissa...), len(b)), 'E')
	n, _ := strconv.Atoi(string(exponent)) // drops the plus and the leading zero
	return strconv.AppendInt(b, int64(n), 10)
}

// withFraction adds ".0" to the number that begins at start, where it has no fraction.
func withFraction(b []byte, start int) []byte {
	if slices.Contains(b[start:], '.') {
		return b
	}
	return append(b, ".0"...)
}
