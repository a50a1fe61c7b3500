package wire

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/headwater-go/headwater/es"
)

// bodyOptions keep what struct tags mean to encoding/json, but for what the package's
// comment says. The library is the mirror of encoding/json/v2, an alias of it from Go
// 1.27 on. It is here because the others replace invalid UTF-8 and lone surrogates in
// silence, not for speed: it reads faster than encoding/json and writes slower.
var bodyOptions = json.JoinOptions(plainOptions,
	json.WithMarshalers(json.MarshalToFunc(writeNumber)),
	json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(readNumber), json.UnmarshalFromFunc(readAnyNumber))),
)

// plainOptions are for types that hold no number whose text must be kept: the look for
// one costs a fifth of decoding.
var plainOptions = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true), json.Deterministic(true),
	json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true),
	jsonv1.OmitEmptyWithLegacySemantics(true), jsonv1.StringifyWithLegacySemantics(true), jsonv1.FormatDurationAsNano(true),
	jsonv1.FormatByteArrayAsArray(true), jsonv1.FormatBytesWithLegacySemantics(true), jsonv1.ParseBytesWithLooseRFC4648(true),
)

// optionsFor are those with which a body of type t is decoded.
func optionsFor(t reflect.Type) json.Options {
	if keepsNumbers(t, map[reflect.Type]bool{}) {
		return bodyOptions
	}
	return plainOptions
}

// keepsNumbers says whether t may hold a number as text.
func keepsNumbers(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return keepsNumbers(t.Elem(), seen)
	case reflect.Map:
		return keepsNumbers(t.Key(), seen) || keepsNumbers(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if keepsNumbers(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return t == reflect.TypeFor[stdjson.Number]()
}

func writeNumber(enc *jsontext.Encoder, n stdjson.Number) error {
	return enc.WriteValue(jsontext.Value(or(string(n), "0")))
}

func readNumber(dec *jsontext.Decoder, n *stdjson.Number) error {
	if dec.PeekKind() == 'n' {
		return dec.SkipValue()
	}
	if dec.PeekKind() != '0' {
		return errors.New("not a number")
	}
	v, err := dec.ReadValue()
	*n = stdjson.Number(v)
	return err
}

// readAnyNumber keeps a number's text where a float64 would round it.
func readAnyNumber(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	n, err := dec.ReadValue()
	*v = stdjson.Number(n)
	return err
}

// decodeJSON decodes a body or state into a pointer; an [es.Raw] takes a copy as it is.
func decodeJSON(raw []byte, target any, o json.Options) error {
	if p, ok := target.(*es.Raw); ok {
		*p = bytes.Clone(raw)
		return nil
	}
	if err := json.Unmarshal(raw, target, o); err != nil {
		var where *json.SemanticError
		if errors.As(err, &where) {
			where.JSONValue = nil // the text must not show what a body holds
		}
		return fmt.Errorf("%w: %w", es.ErrCorrupt, err)
	}
	return nil
}

// appendJSON writes a body or state. What it refuses is an [es.ErrInvalid] or an
// [es.ErrTooLarge].
func (w *writer) appendJSON(body any) error { return w.appendWith(body, bodyOptions) }

func (w *writer) appendWith(body any, o json.Options) error {
	if raw, ok := body.(es.Raw); ok {
		if err := checkJSON(raw); err != nil {
			return invalid(err)
		}
		w.b = append(w.b, raw...)
		return nil
	}
	if v := reflect.ValueOf(body); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return es.Invalid("nil")
	}
	start := len(w.b)
	if err := json.MarshalWrite(w, body, o); err != nil {
		return invalid(err)
	}
	return checkNesting(w.b[start:])
}

// invalid makes an input's fault an [es.ErrInvalid] or [es.ErrTooLarge], whatever it
// was before.
func invalid(err error) error {
	switch {
	case errors.Is(err, es.ErrTooLarge), strings.Contains(err.Error(), "exceeded max depth"):
		return fmt.Errorf("%w: nested over %d levels", es.ErrTooLarge, maxNesting)
	case errors.Is(err, es.ErrCorrupt):
		return es.Invalid("%v", err)
	}
	return fmt.Errorf("%w: %w", es.ErrInvalid, err)
}

// checkNesting is for valid JSON. Counting brackets is cheap, and enough for nearly all.
func checkNesting(b []byte) error {
	if bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) <= maxNesting {
		return nil
	}
	s := scanner{data: b}
	if s.value(); s.err != nil {
		return invalid(s.err)
	}
	return nil
}
