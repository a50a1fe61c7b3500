package snapshot

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/headwater-go/headwater/es"
)

// fingerprint is the default mark of the shape that S has as JSON: [Store].Schema says
// what changes it. It is the same on every platform and in every run.
func fingerprint[S any]() string {
	t := reflect.TypeFor[S]()
	if t == reflect.TypeFor[es.Raw]() {
		return ""
	}
	d := describer{seen: map[reflect.Type]int{}}
	d.describe(t)
	sum := sha256.Sum256([]byte(d.text.String()))
	return hex.EncodeToString(sum[:8])
}

// source is what a codec encodes: by its address, so that methods of pointers write
// their JSON too, but for the type that codecs know by value.
func source(state any) any {
	if raw, ok := state.(*es.Raw); ok {
		return *raw
	}
	return state
}

// describer writes a type down so that equal texts mean equal JSON. A named type that
// comes again is written as a number: so it ends on types that hold themselves.
type describer struct {
	text strings.Builder
	seen map[reflect.Type]int
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func (d *describer) describe(t reflect.Type) {
	if p := reflect.PointerTo(t); t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer &&
		(p.Implements(jsonMarshaler) || p.Implements(textMarshaler)) {
		name, _, _ := strings.Cut(t.Name(), "[") // the arguments hold package paths
		fmt.Fprintf(&d.text, "own %q", name)
		return
	}
	if t.Name() != "" && t.PkgPath() != "" {
		if n, again := d.seen[t]; again {
			fmt.Fprintf(&d.text, "#%d", n)
			return
		}
		d.seen[t] = len(d.seen)
	}
	switch t.Kind() {
	case reflect.Struct:
		d.text.WriteByte('{')
		d.fields(t)
		d.text.WriteByte('}')
	case reflect.Pointer:
		d.text.WriteByte('*')
		d.describe(t.Elem())
	case reflect.Slice:
		d.text.WriteString("[]")
		d.describe(t.Elem())
	case reflect.Array:
		fmt.Fprintf(&d.text, "[%d]", t.Len())
		d.describe(t.Elem())
	case reflect.Map:
		d.text.WriteString("map ")
		d.describe(t.Key())
		d.text.WriteByte(' ')
		d.describe(t.Elem())
	default:
		d.text.WriteString(t.Kind().String())
	}
}

// fields writes the fields in the order of their JSON names. An embedded struct without
// a name of its own stands under "".
func (d *describer) fields(t reflect.Type) {
	type field struct {
		name, option string
		typ          reflect.Type
	}
	var fields []field
	for f := range t.Fields() {
		tag, packed := f.Tag.Get("json"), f.Tag.Get("msgpack")
		if tag == "-" && packed == "" || f.Name == "_" {
			continue
		}
		if !f.IsExported() && !f.Anonymous {
			panic(fmt.Sprintf("snapshot: the unexported field %s of %s would be lost in a snapshot: export it, or tag it json:\"-\" where its loss is meant", f.Name, t))
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" && !f.Anonymous {
			name = f.Name
		}
		option := ""
		if slices.Contains(strings.Split(options, ","), "string") {
			option = ",string"
		}
		if packed != "" {
			option += " msgpack:" + strconv.Quote(packed)
		}
		fields = append(fields, field{name, option, f.Type})
	}
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for _, f := range fields {
		fmt.Fprintf(&d.text, "%q%s ", f.name, f.option)
		d.describe(f.typ)
		d.text.WriteByte(';')
	}
}
