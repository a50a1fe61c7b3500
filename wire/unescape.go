package wire

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// texts are strings that share one buffer of their own, or, where shared, the memory of
// the document.
type texts struct {
	buf    strings.Builder
	shared bool
}

// add is raw as a string. The builder only ever appends, so what it returned before
// stays as it was, also where it grows.
func (t *texts) add(raw []byte) string {
	if t.shared {
		return view(raw)
	}
	start := t.buf.Len()
	t.buf.Write(raw)
	return t.buf.String()[start:]
}

// view is b as a string that shares its memory; b stays as it is.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) } //nolint:gosec // see es.Codec

// unescape adds the text of an escaped token; a lone surrogate, which no Go string can
// hold, is not ok.
func (t *texts) unescape(raw []byte) (s string, ok bool) {
	start, ok := t.buf.Len(), true
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			t.buf.WriteByte(raw[i])
			i++
			continue
		}
		if raw[i+1] != 'u' {
			t.buf.WriteByte(short[raw[i+1]])
			i += 2
			continue
		}
		r, n := unescapeRune(raw[i:])
		ok = ok && !utf16.IsSurrogate(r)
		t.buf.WriteRune(r)
		i += n
	}
	return t.buf.String()[start:], ok
}

// short is what the escapes of one letter stand for.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescapeRune reads a \u with its four digits, or two of them that make a pair, and returns the rune
// and the number of bytes read; a lone surrogate comes back as it is.
func unescapeRune(b []byte) (rune, int) {
	r := hex4(b[2:6])
	if utf16.IsSurrogate(r) && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(b[8:12])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6
}

// hex4 is the value of four hexadecimal digits, or -1.
func hex4(b []byte) rune {
	var r rune
	for _, c := range b {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r |= rune(c|0x20-'a') + 10
		default:
			return -1
		}
	}
	return r
}

// bytesOf is s as bytes that share its memory, only to be looked at.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) } //nolint:gosec // only read
