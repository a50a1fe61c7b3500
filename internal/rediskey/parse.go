package rediskey

import (
	"encoding/base64"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/headwater-go/headwater/es"
)

// ParseMember reads a member of an ids index. It takes exactly what [EventKeys] writes;
// anything else is an [es.ErrCorrupt].
func ParseMember(member string) (id, tenant string, err error) {
	hex, rest, ok := strings.Cut(member, ".")
	if !ok {
		return "", "", es.Corrupt("index member %q has no dot", member)
	}
	if id, ok = decodeHex(hex); !ok {
		return "", "", es.Corrupt("index member %q has no id in it", member)
	}
	if tenant, ok = decodeBase64(rest); !ok {
		return "", "", es.Corrupt("index member %q has no tenant in it", member)
	}
	return id, tenant, nil
}

// ParseIdentity reads [Events].Identity, as notes hold it. It takes
// exactly what [EventKeys] writes; anything else is an [es.ErrCorrupt].
func ParseIdentity(identity string) (id, tenant string, err error) {
	first, rest, ok := strings.Cut(identity, ".")
	if !ok {
		return "", "", es.Corrupt("identity %q has no dot", identity)
	}
	if id, ok = decodeBase64(first); !ok || id == "" {
		return "", "", es.Corrupt("identity %q has no id in it", identity)
	}
	if tenant, ok = decodeBase64(rest); !ok {
		return "", "", es.Corrupt("identity %q has no tenant in it", identity)
	}
	return id, tenant, nil
}

// decodeBase64 is strict: no padding, no line ends, no stray bits, only UTF-8.
func decodeBase64(s string) (string, bool) {
	if strings.ContainsAny(s, "\r\n") {
		return "", false // the decoder would skip them
	}
	var room [128]byte
	b, err := base64.RawURLEncoding.Strict().AppendDecode(room[:0], []byte(s))
	if err != nil || !utf8.Valid(b) {
		return "", false
	}
	return string(b), true
}

// decodeHex is strict: whole lower-case units, surrogates only in pairs, at least one.
func decodeHex(s string) (string, bool) {
	if s == "" || len(s)%4 != 0 {
		return "", false
	}
	var room [128]byte
	b := room[:0]
	for i := 0; i < len(s); i += 4 {
		r, ok := unit(s[i : i+4])
		if ok && utf16.IsSurrogate(r) {
			i += 4
			if i == len(s) {
				return "", false
			}
			var low rune
			low, ok = unit(s[i : i+4])
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return "", false
			}
		}
		if !ok {
			return "", false
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b), true
}

func unit(digits string) (rune, bool) {
	var u rune
	for i := range len(digits) {
		switch c := digits[i]; {
		case c >= '0' && c <= '9':
			u = u<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			u = u<<4 | rune(c-'a'+10)
		default:
			return 0, false
		}
	}
	return u, true
}
