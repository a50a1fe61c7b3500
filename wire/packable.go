package wire

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/headwater-go/headwater/es"
)

var (
	marshalsJSON   = reflect.TypeFor[json.Marshaler]()
	marshalsPacked = []reflect.Type{
		reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](),
		reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.TextMarshaler](),
	}
	knownPackable sync.Map // reflect.Type -> error, or nil
)

// packable refuses a type that MessagePack would silently cut short: a struct with
// unexported fields which writes itself as JSON but in no way that MessagePack asks for.
func packable(t reflect.Type) error {
	if err, ok := knownPackable.Load(t); ok {
		e, _ := err.(error)
		return e
	}
	err := findUnpackable(t, map[reflect.Type]bool{})
	knownPackable.Store(t, err)
	return err
}

func findUnpackable(t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] || t == reflect.TypeFor[time.Time]() {
		return nil
	}
	seen[t] = true
	p := reflect.PointerTo(t)
	if slices.ContainsFunc(marshalsPacked, p.Implements) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return findUnpackable(t.Elem(), seen)
	case reflect.Map:
		return findUnpackable(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if !f.IsExported() && !f.Anonymous {
				if p.Implements(marshalsJSON) {
					return es.Invalid("%s has MarshalJSON, but nothing that writes its unexported fields as MessagePack: "+
						"give it EncodeMsgpack and DecodeMsgpack, or text or binary marshalers", t)
				}
				continue
			}
			if err := findUnpackable(f.Type, seen); err != nil {
				return err
			}
		}
	}
	return nil
}
