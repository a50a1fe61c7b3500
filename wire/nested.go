package wire

import "github.com/headwater-go/headwater/es"

// indexFrom is the number of header fields from which an index of the keys is worth
// its allocation: without one, a header made to hurt would take quadratic time.
const indexFrom = 32

// readHeader reads the object at hand into header; a key that comes again keeps its
// place and takes the last value.
func (r *reader) readHeader() {
	r.header = r.header[:0]
	var index map[string]int
	for key, more := r.key(true); more; key, more = r.key(false) {
		name := r.toText(fieldHeader, key)
		h := es.HeaderField{Key: name, Value: r.toText(fieldHeader, r.value())}
		if len(r.header) == indexFrom {
			index = make(map[string]int)
			for i := range r.header {
				index[r.header[i].Key] = i
			}
		}
		i, known := index[name]
		if index == nil {
			i, known = r.find(name)
		}
		if known {
			r.header[i] = h
			continue
		}
		if index != nil {
			index[name] = len(r.header)
		}
		if r.header == nil {
			r.header = make(es.Header, 0, 4)
		}
		r.header = append(r.header, h)
	}
}

func (r *reader) find(key string) (int, bool) {
	for i := range r.header {
		if r.header[i].Key == key {
			return i, true
		}
	}
	return 0, false
}

// readEvents reads the list at hand into events. An object counts as the list of its
// values, as in Wow.
func (r *reader) readEvents() {
	r.events = r.events[:0]
	if r.data[r.pos] == '[' {
		for more := r.next(']', true); more; more = r.next(']', false) {
			r.events = append(r.events, r.readEvent())
		}
		return
	}
	places := map[string]int{}
	for key, more := r.key(true); more; key, more = r.key(false) {
		name := r.toText(fieldBody, key)
		e := r.readEvent()
		if i, again := places[name]; again {
			r.check(r.events[i].body)
			r.events[i] = e
			continue
		}
		places[name] = len(r.events)
		r.events = append(r.events, e)
	}
}

func (r *reader) readEvent() (e rawEvent) {
	if r.peek() != '{' {
		r.fail("event is no object")
		return e
	}
	for next, first := eventOrder, true; ; first = false {
		f, known, more := r.member(eventOrder, &next, first)
		if !more {
			return e
		}
		if known && f == fieldBody {
			r.replace(&e.body, r.whole())
			continue
		}
		t := r.value()
		if !known {
			continue
		}
		switch f {
		case fieldID:
			e.id = t
		case fieldName:
			e.name = t
		case fieldRevision:
			e.revision = t
		case fieldBodyType:
			e.bodyType = t
		}
	}
}

// tags reads the member tags: absent and null are none.
func (r *reader) tags() es.Tags {
	t := r.fields[fieldTags]
	switch t.kind {
	case absent, null:
		return nil
	case object:
	default:
		r.blame(fieldTags, t, "an object")
		return nil
	}
	if r.err != nil {
		return nil
	}
	outer := r.scanner
	r.scanner = scanner{data: t.raw}
	var tags es.Tags
	for key, more := r.key(true); more; key, more = r.key(false) {
		if tags == nil {
			tags = es.Tags{}
		}
		name := r.toText(fieldTags, key)
		tags[name] = r.tagValues()
	}
	outer.err = r.err
	r.scanner = outer
	return tags
}

func (r *reader) tagValues() []string {
	switch r.peek() {
	case 'n':
		r.value()
		return nil
	case '[':
	default:
		r.fail("a tag's value is no list")
		return nil
	}
	values := []string{}
	for more := r.next(']', true); more; more = r.next(']', false) {
		values = append(values, r.toText(fieldTags, r.value()))
	}
	return values
}
