package wire

import (
	"encoding"
	"reflect"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/headwater-go/headwater/es"
)

var (
	marshalsText = reflect.TypeFor[encoding.TextMarshaler]()
	// marshalsBytes go before it, and write what they like.
	marshalsBytes = []reflect.Type{
		reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](), reflect.TypeFor[encoding.BinaryMarshaler](),
	}
	knownTexts sync.Map // reflect.Type -> bool
)

// mayHoldTexts says whether a value of the type may hold one that writes itself as text.
func mayHoldTexts(t reflect.Type) bool {
	if known, ok := knownTexts.Load(t); ok {
		return known.(bool) //nolint:forcetypeassert // nothing else is stored
	}
	found := findTexts(t, map[reflect.Type]bool{})
	knownTexts.Store(t, found)
	return found
}

func findTexts(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	p := reflect.PointerTo(t)
	if slices.ContainsFunc(marshalsBytes, p.Implements) {
		return false
	}
	if p.Implements(marshalsText) {
		return true
	}
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return findTexts(t.Elem(), seen)
	case reflect.Map:
		return findTexts(t.Key(), seen) || findTexts(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if (f.IsExported() || f.Anonymous) && findTexts(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// checkTexts refuses text that is not valid UTF-8 in a value that was written: the
// library writes what a text marshaler makes as bytes, which [checkPacked] cannot tell
// from bytes that may be anything.
func checkTexts(v reflect.Value) error {
	if !v.IsValid() || !mayHoldTexts(v.Type()) {
		return nil
	}
	if text, ok := textOf(v); ok {
		if !utf8.Valid(text) {
			return es.Invalid("%q is not valid UTF-8", text)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return checkTexts(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := checkTexts(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if err := checkTexts(each.Key()); err != nil {
				return err
			}
			if err := checkTexts(each.Value()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for f, field := range v.Fields() {
			if (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" {
				if err := checkTexts(field); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// textOf is what v's text marshaler makes, where it has one. An error it returns is
// the encoder's to report, which asked it before.
func textOf(v reflect.Value) ([]byte, bool) {
	if !v.Type().Implements(marshalsText) && v.CanAddr() {
		v = v.Addr()
	}
	if !v.CanInterface() || v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, false
	}
	m, ok := reflect.TypeAssert[encoding.TextMarshaler](v)
	if !ok {
		return nil, false
	}
	text, err := m.MarshalText()
	return text, err == nil
}
