package wire

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/headwater-go/headwater/es"
)

// entry is what a table knows of one stored name.
type entry struct {
	body     reflect.Type // exactly what is decoded: T or *T
	name     string
	revision string
	bodyType string
	former   bool
	options  json.Options // with which its JSON is decoded
	scratch  sync.Pool    // of *T, zeroed: what a body is decoded into before it is copied out
}

// elem is T of both T and *T, by which a body's entry is found.
func elem(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// decode makes a new body of what is stored.
func (e *entry) decode(s stored) (any, error) {
	if e.body.Kind() == reflect.Pointer {
		p := reflect.New(e.body.Elem())
		err := s.decode(p.Interface(), e.options)
		return p.Interface(), err
	}
	p := e.scratch.Get()
	if p == nil {
		p = reflect.New(e.body).Interface()
	}
	if err := s.decode(p, e.options); err != nil {
		return nil, err
	}
	v := reflect.ValueOf(p).Elem()
	body := v.Interface()
	v.SetZero()
	e.scratch.Put(p)
	return body, nil
}

// aggregate is the table of one aggregate type.
type aggregate struct {
	es.AggregateType
	commands           map[reflect.Type]*entry
	commandsByName     map[string]*entry
	commandsByBodyType map[string]*entry
	events             map[reflect.Type]*entry
	eventsByName       map[string][]*entry // one for each revision
	eventsByBodyType   map[string]*entry   // nil where several Go types share the body type
	upcasters          map[string]map[string]*es.Upcaster
}

// command finds the entry of a command that is read.
func (a *aggregate) command(name, bodyType string) *entry {
	if e := a.commandsByBodyType[bodyType]; e != nil {
		return e
	}
	if bodyType == name {
		return a.commandsByName[name]
	}
	return nil
}

// eventNamed finds the entry of an event that is read.
func (a *aggregate) eventNamed(name, revision string) *entry {
	if a == nil {
		return nil
	}
	for _, e := range a.eventsByName[name] {
		if e.revision == revision {
			return e
		}
	}
	return nil
}

// tables is all that a codec knows, by the aggregates' names: few contexts share one.
type tables map[string][]*aggregate

// typeOf is the table of what a message names, and its aggregate type: without alias
// where there is no table.
func (t tables) typeOf(context, name string) (*aggregate, es.AggregateType) {
	for _, a := range t[name] {
		if a.Context == context {
			return a, a.AggregateType
		}
	}
	return nil, es.AggregateType{Context: context, Name: name}
}

func (t tables) of(at es.AggregateType) *aggregate {
	a, _ := t.typeOf(at.Context, at.Name)
	return a
}

func newTables(types []es.Types) tables {
	t := make(tables, len(types))
	contexts, scopes := map[string]string{}, map[string]string{}
	for _, ty := range types {
		at := ty.Aggregate
		if err := at.Validate(); err != nil {
			panic(fmt.Sprintf("wire: types of %q: %v", at, err))
		}
		if t.of(at) != nil {
			panic(fmt.Sprintf("wire: two tables for %s", at))
		}
		if c, ok := contexts[at.Scope()]; ok && c != at.Context {
			panic(fmt.Sprintf("wire: contexts %q and %q share the alias %q", c, at.Context, at.Scope()))
		}
		if s, ok := scopes[at.Context]; ok && s != at.Scope() {
			panic(fmt.Sprintf("wire: context %q has two aliases, %q and %q", at.Context, s, at.Scope()))
		}
		contexts[at.Scope()], scopes[at.Context] = at.Context, at.Scope()
		t[at.Name] = append(t[at.Name], newAggregate(ty))
	}
	return t
}
