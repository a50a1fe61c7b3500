package rediskey

import (
	"strings"
	"unicode/utf16"
)

// Buckets is how many buckets the aggregates of a type are spread over.
const Buckets = 128

// Bucket is the bucket of an aggregate id, in [0, [Buckets]): Java's floorMod(hash, 128).
func Bucket(id string) int { return int(hash(id)) & (Buckets - 1) }

// hash is Java's String.hashCode: over UTF-16 code units, wrapping at 32 bits.
func hash(s string) int32 {
	var h int32
	for _, r := range s {
		if r > 0xFFFF {
			high, low := utf16.EncodeRune(r)
			h, r = 31*h+high, low
		}
		h = 31*h + r
	}
	return h
}

// Compare orders ids by their UTF-16 code units, as the ids index does. It differs from
// [strings.Compare] where a code point above U+FFFF meets one from U+E000 on.
func Compare(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return int(rank(a[i])) - int(rank(b[i]))
		}
	}
	return strings.Compare(a, b) // one begins the other
}

// rank puts the lead bytes of U+E000–U+FFFF after those of U+10000 and above, whose
// UTF-16 begins with a surrogate.
func rank(b byte) byte {
	if b == 0xEE || b == 0xEF {
		return b + 0x10
	}
	return b
}

// After is the lower bound of ZRANGEBYLEX on an ids index that leaves out everything up
// to id, in whatever tenant; "" = from the first.
func After(id string) string {
	if id == "" {
		return "-"
	}
	var room [256]byte
	return string(append(appendHex(append(room[:0], '('), id), '/'))
}

// appendHex writes each UTF-16 code unit as four digits.
func appendHex(b []byte, s string) []byte {
	for _, r := range s {
		if r > 0xFFFF {
			high, low := utf16.EncodeRune(r)
			b, r = appendUnit(b, high), low
		}
		b = appendUnit(b, r)
	}
	return b
}

func appendUnit(b []byte, u rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
}
