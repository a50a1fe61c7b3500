package wire

import (
	"bytes"
	"time"
	"unicode/utf8"

	"github.com/headwater-go/headwater/es"
)

// unpacker reads the envelope of a packed document, member by member, in the order in
// which they were written. The first fault stays in err.
type unpacker struct {
	walker
	texts
}

// document opens a document of one kind, up to its head.
func (u *unpacker) document(data []byte, kind byte) {
	u.b, u.err = unpackKind(data, kind)
	u.buf.Grow(min(len(data)/2, 512)) // a wrong guess costs one more buffer
}

// members opens a list of at least so many members; later versions of this package
// may add some, which are extra.
func (u *unpacker) members(least int) (extra int) {
	n := u.list()
	if n < least {
		u.fail("%d members", n)
		return 0
	}
	return n - least
}

// end skips members that are new to us and checks that nothing follows.
func (u *unpacker) end(extra int) {
	for ; extra > 0 && u.err == nil; extra-- {
		u.walk(maxNesting)
	}
	if u.err == nil && u.pos < len(u.b) {
		u.fail("more bytes after the document")
	}
}

// open wants a value of one kind.
func (u *unpacker) open(kind byte) shape {
	s := u.walker.open()
	if s.kind != kind && u.err == nil {
		u.fail("a value of another kind")
	}
	return s
}

// list is the length of a list, no longer than bytes are left.
func (u *unpacker) list() int { return u.bounded(u.open('a').values) }

func (u *unpacker) bounded(n int) int {
	if u.err != nil || n > len(u.b)-u.pos {
		u.fail("unexpected end")
		return 0
	}
	return n
}

func (u *unpacker) isNil() bool {
	if u.err == nil && u.pos < len(u.b) && u.b[u.pos] == 0xc0 {
		u.pos++
		return true
	}
	return false
}

func (u *unpacker) text() string {
	b := u.take(u.open('s').bytes)
	if !utf8.Valid(b) {
		u.fail("invalid UTF-8")
	}
	return u.add(b)
}

// textOr is otherwise where nil was written.
func (u *unpacker) textOr(otherwise string) string {
	if u.isNil() {
		return otherwise
	}
	return u.text()
}

func (u *unpacker) int64() int64 {
	start := u.pos
	s := u.open('i')
	n, ok := int64(0), false
	if b := u.take(s.bytes); u.err == nil {
		n, ok = toInteger(u.b[start], b)
	}
	if !ok {
		u.fail("no integer of 64 bits")
	}
	return n
}

func (u *unpacker) integer() int {
	n := u.int64()
	if n != int64(int32(n)) {
		u.fail("no integer of 32 bits")
	}
	return int(n)
}

func (u *unpacker) time() time.Time { return fromMillis(u.int64()) }

func (u *unpacker) flag() bool {
	u.open('b')
	return u.err == nil && u.b[u.pos-1] == 0xc3
}

func (u *unpacker) header() es.Header {
	n := u.bounded(u.open('m').values)
	if n == 0 {
		return nil
	}
	h := make(es.Header, 0, n)
	for ; n > 0 && u.err == nil; n-- {
		key := u.text()
		h = append(h, es.HeaderField{Key: key, Value: u.text()})
	}
	return h
}

func (u *unpacker) tags() es.Tags {
	n := u.bounded(u.open('m').values)
	if n == 0 {
		return nil
	}
	tags := es.Tags{}
	for ; n > 0 && u.err == nil; n-- {
		name := u.text()
		if u.isNil() {
			tags[name] = nil
			continue
		}
		values := make([]string, 0, 4)
		for m := u.list(); m > 0 && u.err == nil; m-- {
			values = append(values, u.text())
		}
		tags[name] = values
	}
	return tags
}

// value is the bytes of a body or state, which may not be nil.
func (u *unpacker) value() []byte {
	start := u.pos
	if u.walk(maxNesting); u.err != nil {
		return nil
	}
	raw := u.b[start:u.pos]
	if raw[0] == 0xc0 {
		u.fail("nil for a body or state")
	}
	if text, ok := jsonIn(raw); ok && u.err == nil {
		if err := checkJSON(text); err != nil {
			u.err = err
		}
	}
	return raw
}

// jsonIn is the text of a body that is stored as JSON.
func jsonIn(raw []byte) ([]byte, bool) {
	w := walker{b: raw}
	if s := w.open(); s.kind != 'x' || w.pos >= len(raw) || raw[w.pos] != extJSON {
		return nil, false
	}
	return raw[w.pos+1:], true
}

// rawOf is a copy of a stored body: JSON where it was given as such, else MessagePack.
// A number that looks like a JSON digit is written out with its code, so that
// [packer.appendRaw] cannot take it for one.
func rawOf(raw []byte) es.Raw {
	if text, ok := jsonIn(raw); ok {
		return es.Raw(bytes.Clone(text))
	}
	if len(raw) == 1 && raw[0] >= '0' && raw[0] <= '9' {
		return es.Raw{0xcc, raw[0]}
	}
	return es.Raw(bytes.Clone(raw))
}
