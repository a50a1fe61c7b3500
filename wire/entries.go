package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/headwater-go/headwater/es"
)

// newAggregate builds the table of one aggregate type. It panics on a mistake.
func newAggregate(ty es.Types) *aggregate {
	a := &aggregate{
		AggregateType: ty.Aggregate,
		commands:      map[reflect.Type]*entry{}, commandsByName: map[string]*entry{}, commandsByBodyType: map[string]*entry{},
		events: map[reflect.Type]*entry{}, eventsByName: map[string][]*entry{}, eventsByBodyType: map[string]*entry{},
		upcasters: map[string]map[string]*es.Upcaster{},
	}
	for _, c := range ty.Commands {
		a.addCommand(newEntry(a, "command", c))
	}
	for _, e := range ty.Events {
		a.addEvent(newEntry(a, "event", e))
	}
	for _, c := range es.BuiltinCommands() {
		if e := newEntry(a, "command", c); a.commands[e.body] == nil && a.commandsByName[e.name] == nil {
			a.addCommand(e)
		}
	}
	for _, c := range es.BuiltinEvents() {
		if e := newEntry(a, "event", c); a.events[e.body] == nil && a.eventNamed(e.name, e.revision) == nil {
			a.addEvent(e)
		}
	}
	for i := range ty.Upcasters {
		a.addUpcaster(&ty.Upcasters[i])
	}
	return a
}

// newEntry fills the defaults of t.
func newEntry(a *aggregate, what string, t es.Type) *entry {
	if t.Body == nil {
		panic(fmt.Sprintf("wire: a %s of %s has no Body", what, a))
	}
	e := &entry{body: reflect.TypeOf(t.Body), name: t.Name, revision: t.Revision, bodyType: t.BodyType, former: t.Former}
	body := t.Body
	if e.body.Kind() == reflect.Pointer {
		body = reflect.New(e.body.Elem()).Interface() // methods may not bear nil
	}
	var name string
	if c, ok := body.(es.CommandBody); ok && what == "command" {
		name = c.CommandName()
	} else if ev, ok := body.(es.EventBody); ok && what == "event" {
		n := es.NewEvent("", ev)
		name, e.revision = n.Name, or(e.revision, n.Revision)
	} else {
		panic(fmt.Sprintf("wire: %s of %s is no %s body; if its method has a pointer receiver, give &%s{}", e.body, a, what, e.body.Name()))
	}
	e.name = or(e.name, name)
	e.bodyType = or(e.bodyType, e.name)
	e.options = optionsFor(e.body)
	if strings.TrimSpace(e.name) == "" || what == "event" && strings.TrimSpace(e.revision) == "" {
		panic(fmt.Sprintf("wire: %s of %s has a blank name or revision", e.body, a))
	}
	return e
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (a *aggregate) addCommand(e *entry) {
	a.current(a.commands, e)
	if old := a.commandsByName[e.name]; clash(old, e) {
		panic(fmt.Sprintf("wire: %s and %s of %s have one name, %q", old.body, e.body, a, e.name))
	}
	if old := a.commandsByBodyType[e.bodyType]; clash(old, e) {
		panic(fmt.Sprintf("wire: %s and %s of %s have one body type, %q", old.body, e.body, a, e.bodyType))
	}
	keep(a.commandsByName, e.name, e)
	keep(a.commandsByBodyType, e.bodyType, e)
}

func (a *aggregate) addEvent(e *entry) {
	a.current(a.events, e)
	old := a.eventNamed(e.name, e.revision)
	if clash(old, e) {
		panic(fmt.Sprintf("wire: %s and %s of %s have one name and revision, %q %q", old.body, e.body, a, e.name, e.revision))
	}
	switch known := a.eventsByName[e.name]; {
	case old == nil:
		a.eventsByName[e.name] = append(known, e)
	case old.former:
		known[slices.Index(known, old)] = e
	}
	// A body type is the last resort: where revisions of one event have Go types of
	// their own, it says nothing about a revision that has none.
	if old, taken := a.eventsByBodyType[e.bodyType]; taken && (old == nil || clash(old, e)) {
		a.eventsByBodyType[e.bodyType] = nil
	} else {
		keep(a.eventsByBodyType, e.bodyType, e)
	}
}

// current makes e the entry by which its Go type is written.
func (a *aggregate) current(byType map[reflect.Type]*entry, e *entry) {
	if e.former {
		return
	}
	if byType[elem(e.body)] != nil {
		panic(fmt.Sprintf("wire: %s of %s has two entries; mark the older one Former", e.body, a))
	}
	byType[elem(e.body)] = e
}

func clash(old, e *entry) bool { return old != nil && elem(old.body) != elem(e.body) }

// keep prefers a current entry to a former one.
func keep[K comparable](m map[K]*entry, k K, e *entry) {
	if m[k] == nil || m[k].former {
		m[k] = e
	}
}

func (a *aggregate) addUpcaster(u *es.Upcaster) {
	if u.Event == "" || u.Up == nil {
		panic(fmt.Sprintf("wire: an upcaster of %s lacks its Event or its Up", a))
	}
	byRevision := a.upcasters[u.Event]
	if byRevision == nil {
		byRevision = map[string]*es.Upcaster{}
		a.upcasters[u.Event] = byRevision
	}
	if byRevision[u.Revision] != nil {
		panic(fmt.Sprintf("wire: two upcasters of %s for event %q revision %q", a, u.Event, u.Revision))
	}
	byRevision[u.Revision] = u
}
