package wire

import (
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/headwater-go/headwater/es"
)

// reader reads one envelope: first all members, as tokens, so that the last of two
// equal keys wins and the order never matters; then each is asked for by its type. The
// first fault stays in err.
type reader struct {
	scanner
	texts
	fields [fieldCount]token
	header es.Header
	events []rawEvent
}

// readers keep what they need for a while, so that a document costs little more than
// what is read from it.
var readers = sync.Pool{New: func() any { return new(reader) }}

func newReader() *reader { return readers.Get().(*reader) } //nolint:forcetypeassert // the pool holds no other

// release gives r back; nothing that it returned is touched.
func (r *reader) release() {
	clear(r.events)
	*r = reader{events: r.events[:0]}
	readers.Put(r)
}

// rawEvent holds the members of an event within a stream.
type rawEvent struct{ id, name, revision, bodyType, body token }

// maxShared is the longest document whose texts share its memory: whoever keeps one of
// them keeps the document.
const maxShared = 4 << 10

// read takes the members of the document apart. With events, its body is a list of them.
func (r *reader) read(data []byte, o order, events bool) error {
	if isPacked(data) {
		return fmt.Errorf("%w: it begins like MessagePack", es.ErrWrongFormat)
	}
	r.data = data
	if r.shared = len(data) <= maxShared; !r.shared {
		r.buf.Grow(512) // a wrong guess costs one more buffer
	}
	if r.simple = isSimple(data); !r.simple && !utf8.Valid(data) {
		return es.Corrupt("invalid UTF-8")
	}
	if r.peek() != '{' {
		return es.Corrupt("no JSON object")
	}
	for next, first := o, true; ; first = false {
		f, known, more := r.member(o, &next, first)
		switch {
		case !more:
			r.end()
			return r.err
		case !known:
			r.value()
		case f == fieldHeader && r.peek() == '{':
			r.fields[f] = token{kind: object}
			r.readHeader()
		case f == fieldBody && events && r.isComposite():
			r.fields[f] = token{kind: array}
			r.readEvents()
		case f == fieldBody || f == fieldState:
			r.replace(&r.fields[f], r.whole())
		default:
			r.fields[f] = r.value()
		}
	}
}

// replace gives a member that may be there already its last value; what comes before it
// is checked, since nobody else does.
func (r *reader) replace(old *token, t token) {
	r.check(*old)
	*old = t
}

// check reads what is unchecked so far.
func (r *reader) check(t token) {
	if t.unchecked && r.err == nil {
		r.err = checkJSON(t.raw)
	}
}

// member moves to the value of an object's next member, or past its end. next is what
// is likely to come.
func (r *reader) member(o order, next *order, first bool) (f field, known, more bool) {
	lead := byte(',')
	if first {
		lead = '{'
	}
	if n := *next; len(n) > 0 && r.err == nil {
		end := r.pos + 1 + len(n[0].lead)
		if end <= len(r.data) && r.data[r.pos] == lead && string(r.data[r.pos+1:end]) == n[0].lead {
			r.pos, *next = end, n[1:]
			return n[0].field, true, true
		}
	}
	key, more := r.key(first)
	if !more {
		return 0, false, false
	}
	if f, known = r.lookup(key); known {
		*next = o.after(f)
	}
	return f, known, true
}

func (r *reader) isComposite() bool { c := r.peek(); return c == '{' || c == '[' }

func (r *reader) lookup(key token) (field, bool) {
	name := key.raw
	if key.escaped {
		s, _ := r.unescape(key.raw)
		name = []byte(s)
	}
	if len(name) <= maxFieldName {
		for _, f := range fieldsByLength[len(name)] {
			if fieldNames[f] == string(name) {
				return f, true
			}
		}
	}
	return 0, false
}

// blame records that a member is missing or of the wrong kind.
func (r *reader) blame(f field, t token, want string) {
	if r.err != nil {
		return
	}
	if t.kind == absent {
		r.err = es.Corrupt("%s is missing", fieldNames[f])
		return
	}
	r.err = es.Corrupt("%s is not %s", fieldNames[f], want)
}

// aggregateID is whom the document is about; Wow takes blank names in some documents.
func (r *reader) aggregateID(t tables) es.AggregateID {
	_, at := t.typeOf(r.str(fieldContext), r.str(fieldAggregate))
	return es.AggregateID{Type: at, ID: r.str(fieldAggregateID), Tenant: r.str(fieldTenant)}
}

// headers is the header, which must be there and be an object.
func (r *reader) headers() es.Header {
	if t := r.fields[fieldHeader]; t.kind != object {
		r.blame(fieldHeader, t, "an object")
	}
	return r.header
}

// whole is a body or state, which may be anything but null.
func (r *reader) stored(f field, t token) stored {
	if t.kind == absent || t.kind == null {
		r.blame(f, t, "to be null")
	}
	return stored{b: t.raw, unchecked: t.unchecked}
}

// str is a text member that must be there.
func (r *reader) str(f field) string { return r.toText(f, r.fields[f]) }

// optional is a text member that is "" where absent.
func (r *reader) optional(f field) string {
	if r.fields[f].kind == absent {
		return ""
	}
	return r.str(f)
}

func (r *reader) toText(f field, t token) string {
	switch t.kind {
	case null:
		return ""
	case boolean:
		return r.texts.add(t.raw)
	case number:
		if s, ok := numberText(t.raw); ok {
			return s
		}
	case text:
		if !t.escaped {
			return r.texts.add(t.raw)
		}
		if s, ok := r.unescape(t.raw); ok {
			return s
		}
		r.blame(f, t, "valid Unicode: it has a lone surrogate")
	}
	r.blame(f, t, "a text")
	return ""
}

// notBlank is a text member that Wow refuses where it is blank.
func (r *reader) notBlank(f field, t token) string {
	s := r.toText(f, t)
	if r.err == nil && blank(s) {
		r.err = es.Corrupt("%s is blank", fieldNames[f])
	}
	return s
}

func (r *reader) integer(f field) int {
	n, ok := toInt(r.fields[f], 32)
	if !ok {
		r.blame(f, r.fields[f], "a 32-bit integer")
	}
	return int(n)
}

func (r *reader) flag(f field) bool {
	b, ok := toBool(r.fields[f])
	if !ok {
		r.blame(f, r.fields[f], "true or false")
	}
	return b
}

func (r *reader) optionalFlag(f field) bool { return r.fields[f].kind != absent && r.flag(f) }

func (r *reader) time(f field) time.Time {
	ms, ok := toInt(r.fields[f], 64)
	if !ok {
		r.blame(f, r.fields[f], "a time in milliseconds")
	}
	return fromMillis(ms)
}

func (r *reader) optionalTime(f field) time.Time {
	if r.fields[f].kind == absent {
		return time.Time{}
	}
	return r.time(f)
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
