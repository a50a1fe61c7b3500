package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/headwater-go/headwater/es"
)

// walker moves over MessagePack and checks it: lengths, nesting, UTF-8, and that no
// number is NaN or infinite. The first fault stays in err.
type walker struct {
	b   []byte
	pos int
	err error
}

func (w *walker) fail(format string, args ...any) {
	if w.err == nil {
		w.err = es.Corrupt(format+" at byte %d", append(args, w.pos)...)
	}
}

// take returns the next n bytes.
func (w *walker) take(n int) []byte {
	if w.err != nil || n > len(w.b)-w.pos {
		w.fail("unexpected end")
		return nil
	}
	w.pos += n
	return w.b[w.pos-n : w.pos]
}

// number reads a big-endian length of size bytes; a fault is -1.
func (w *walker) number(size int) int {
	b := w.take(size)
	switch len(b) {
	case 1:
		return int(b[0])
	case 2:
		return int(binary.BigEndian.Uint16(b))
	case 4:
		return int(binary.BigEndian.Uint32(b))
	}
	return -1
}

// shape is what a code announces: bytes that follow, or values that do.
type shape struct {
	kind   byte // n nil, b bool, i integer, f float, s text, y bytes, a array, m map, x extension
	bytes  int  // that follow the code
	length int  // size of the length that follows the code; 0 = known already
	values int
}

// shapes are indexed by code; 0xc1 is none.
var shapes = func() (t [256]shape) {
	for c := range t {
		switch {
		case c < 0x80 || c >= 0xe0:
			t[c] = shape{kind: 'i'}
		case c < 0x90:
			t[c] = shape{kind: 'm', values: c & 15}
		case c < 0xa0:
			t[c] = shape{kind: 'a', values: c & 15}
		case c < 0xc0:
			t[c] = shape{kind: 's', bytes: c & 31}
		}
	}
	t[0xc0] = shape{kind: 'n'}
	t[0xc2], t[0xc3] = shape{kind: 'b'}, shape{kind: 'b'}
	t[0xca], t[0xcb] = shape{kind: 'f', bytes: 4}, shape{kind: 'f', bytes: 8}
	for i := range 4 { // uint8… and int8…, and extensions of 1, 2, 4, 8 bytes
		t[0xcc+i], t[0xd0+i], t[0xd4+i] = shape{kind: 'i', bytes: 1 << i}, shape{kind: 'i', bytes: 1 << i}, shape{kind: 'x', bytes: 1 << i}
	}
	t[0xd8] = shape{kind: 'x', bytes: 16}
	for i := range 3 { // lengths of 1, 2, 4 bytes
		t[0xc4+i], t[0xc7+i], t[0xd9+i] = shape{kind: 'y', length: 1 << i}, shape{kind: 'x', length: 1 << i}, shape{kind: 's', length: 1 << i}
	}
	for i := range 2 { // lengths of 2, 4 bytes
		t[0xdc+i], t[0xde+i] = shape{kind: 'a', length: 2 << i}, shape{kind: 'm', length: 2 << i}
	}
	return t
}()

// open reads a code with its length, if it has one. The shape's bytes or values follow.
func (w *walker) open() shape {
	code := w.take(1)
	if code == nil {
		return shape{}
	}
	s := shapes[code[0]]
	if s.kind == 0 {
		w.fail("unused code")
	}
	if s.length > 0 {
		n := w.number(s.length)
		if s.kind == 'a' || s.kind == 'm' {
			s.values = n
		} else {
			s.bytes = n
		}
	}
	return s
}

// walk moves over one value of at most levels levels.
func (w *walker) walk(levels int) {
	s := w.open()
	switch s.kind {
	case 'a', 'm':
		if levels == 0 && w.err == nil {
			w.err = fmt.Errorf("%w: %w: nested over %d levels at byte %d", es.ErrCorrupt, es.ErrTooLarge, maxNesting, w.pos)
		}
		n := s.values
		if s.kind == 'm' {
			n *= 2
		}
		for ; n > 0 && w.err == nil; n-- {
			w.walk(levels - 1)
		}
	case 's':
		if !utf8.Valid(w.take(s.bytes)) {
			w.fail("invalid UTF-8")
		}
	case 'f':
		if f := toFloat(w.take(s.bytes)); math.IsNaN(f) || math.IsInf(f, 0) {
			w.fail("%v", f)
		}
	case 'x':
		w.take(s.bytes + 1)
	default:
		w.take(s.bytes)
	}
}

func toFloat(b []byte) float64 {
	switch len(b) {
	case 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	case 8:
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

// toInteger reads the integer with the given code and the bytes after it; one above
// int64 is not ok.
func toInteger(code byte, b []byte) (int64, bool) {
	var u uint64
	for _, c := range b {
		u = u<<8 | uint64(c)
	}
	switch {
	case len(b) == 0:
		return int64(int8(code)), true
	case code < 0xd0:
		return int64(u), u <= math.MaxInt64
	}
	shift := 64 - 8*len(b)
	return int64(u<<shift) >> shift, true
}
