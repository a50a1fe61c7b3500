// Package output writes what the commands found: tables and text for people, one JSON
// document for programs. Whatever came from Redis is cleaned of what a terminal would obey.
package output

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean is s with every character escaped that a terminal would obey or not show:
// control and format characters, line separators, invalid bytes.
func Clean(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// hidden is true of invalid bytes too, which range gives as RuneError.
func hidden(r rune) bool { return r == utf8.RuneError || r != ' ' && !unicode.IsPrint(r) }

// Width is how many columns of a terminal the cleaned text s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide is true of the East Asian wide and the emoji blocks.
func wide(r rune) bool {
	return r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff ||
		r >= 0x20000 && r <= 0x3fffd)
}

// Cut is the cleaned s, shortened to so many columns.
func Cut(s string, columns int) string {
	s = Clean(s)
	if Width(s) <= columns {
		return s
	}
	n := 0
	for i, r := range s {
		if n += Width(string(r)); n >= columns {
			return s[:i] + "…"
		}
	}
	return s
}
