package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/headwater-go/headwater/es"
)

// maxNesting is how many levels of objects and arrays a body or state may have. One
// level more is neither written nor read.
const maxNesting = 512

type kind uint8

const (
	absent kind = iota
	null
	boolean
	number
	text
	object
	array
)

// token is one JSON value in the document: a text without its quotes, still escaped;
// everything else as it stands.
type token struct {
	raw     []byte
	kind    kind
	escaped bool
	// unchecked values are no longer than their brackets say; what is within is yet to be read.
	unchecked bool
}

// scanner walks once over a JSON document and checks it on the way. The first fault
// stays in err, and every call after it fails. That the document is valid UTF-8 is
// checked before.
type scanner struct {
	data   []byte
	pos    int
	err    error
	simple bool // the document is ASCII without escapes and control characters
}

// isSimple reports a document of printable ASCII and no backslash, eight bytes at a
// time: in it a text ends at the next quote, and nothing in a text needs a look.
func isSimple(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	if bytes.IndexByte(b, '\\') >= 0 {
		return false
	}
	// A high bit: not ASCII, or borrowed from: below a space.
	for ; len(b) >= 32; b = b[32:] {
		w, x, y, z := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		if (w|(w-ones*' ')|x|(x-ones*' ')|y|(y-ones*' ')|z|(z-ones*' '))&highs != 0 {
			return false
		}
	}
	for _, c := range b {
		if c < ' ' || c >= 0x80 {
			return false
		}
	}
	return true
}

func (s *scanner) fail(what string) bool {
	if s.err == nil {
		s.err = es.Corrupt("%s at byte %d", what, s.pos)
	}
	return false
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// end checks that nothing follows the document.
func (s *scanner) end() {
	if s.peek(); s.pos < len(s.data) {
		s.fail("more text after the document")
	}
}

// key moves to the value of an object's next member, or past the closing brace, where
// more is false.
func (s *scanner) key(first bool) (key token, more bool) {
	if !s.next('}', first) {
		return token{}, false
	}
	if s.peek() != '"' {
		return token{}, s.fail("no key")
	}
	key = s.text()
	if s.peek() != ':' {
		return token{}, s.fail("no colon")
	}
	s.pos++
	return key, s.err == nil
}

// next moves to the next element of an object or array, or past its end.
func (s *scanner) next(end byte, first bool) (more bool) {
	if first {
		s.pos++ // the opening bracket
	}
	switch c := s.peek(); {
	case c == end:
		s.pos++
		return false
	case first:
		return s.err == nil
	case c != ',':
		return s.fail("no comma")
	}
	s.pos++
	if s.peek() == end {
		return s.fail("trailing comma")
	}
	return s.err == nil
}

// value reads the next value, whatever it is.
func (s *scanner) value() token {
	switch c := s.peek(); c {
	case '"':
		return s.text()
	case '{', '[':
		start, k := s.pos, object
		if c == '[' {
			k = array
		}
		s.skip(maxNesting)
		return token{raw: s.data[start:s.pos], kind: k}
	case 'n':
		return s.word("null", null)
	case 't':
		return s.word("true", boolean)
	case 'f':
		return s.word("false", boolean)
	}
	return s.number()
}

// whole reads the next value with its quotes, where it is a text. An object or array is
// left unchecked in a simple document: the library that decodes it checks it too.
func (s *scanner) whole() token {
	c := s.peek()
	start := s.pos
	var t token
	if s.simple && (c == '{' || c == '[') {
		t = token{kind: object, unchecked: true}
		if c == '[' {
			t.kind = array
		}
		s.hop()
	} else {
		t = s.value()
	}
	t.raw = s.data[start:s.pos]
	return t
}

// hop moves past an object or array of a simple document by its brackets alone. Where
// they do not close it ends with the document, in which a comma or a bracket is due then.
func (s *scanner) hop() {
	n, deep := extent(view(s.data[s.pos:]))
	if s.pos += n; deep {
		s.tooDeep()
	}
}

// extent is the length of the object or array that a simple text begins with, by its
// brackets alone: what stands within them may be no JSON. Where they do not close, it is
// the whole text; where they are too deep, what comes before them.
func extent(s string) (n int, deep bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch brackets[s[i]] {
		case '"':
			end := strings.IndexByte(s[i+1:], '"')
			if end < 0 {
				return len(s), false
			}
			i += 1 + end
		case '[':
			if depth++; depth > maxNesting {
				return i, true
			}
		case ']':
			if depth--; depth == 0 {
				return i + 1, false
			}
		}
	}
	return len(s), false
}

// brackets are the bytes that say where a value ends; those of both kinds are as one.
var brackets = [256]byte{'"': '"', '{': '[', '[': '[', '}': ']', ']': ']'}

func (s *scanner) tooDeep() {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %w: nested over %d levels at byte %d", es.ErrCorrupt, es.ErrTooLarge, maxNesting, s.pos)
	}
}

// skip moves past an object or array of at most levels levels.
func (s *scanner) skip(levels int) {
	if levels == 0 {
		s.tooDeep()
		return
	}
	isObject, end := s.data[s.pos] == '{', s.data[s.pos]+2 // '{'+2 = '}', '['+2 = ']'
	for first := true; ; first = false {
		var more bool
		if isObject {
			_, more = s.key(first)
		} else {
			more = s.next(end, first)
		}
		if !more {
			return
		}
		if c := s.peek(); c == '{' || c == '[' {
			s.skip(levels - 1)
		} else {
			s.value()
		}
	}
}

// checkJSON says what keeps b from being one JSON value as this package takes it.
func checkJSON(b []byte) error {
	if !utf8.Valid(b) {
		return es.Corrupt("invalid UTF-8")
	}
	s := scanner{data: b}
	s.value()
	s.end()
	return s.err
}
