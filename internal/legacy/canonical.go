package legacy

import (
	"encoding/base64"
	"strings"
)

// E is the canonical layout, v2, which every Wow since 8.9.0 and Headwater write.
const E Eras = 1 << 4

// Canonical tells what a key of the canonical layout holds, by its text. Stem is
// "<alias>.<aggregate name>", and "" for a [Prepare]; the keys that Headwater keeps
// beside Wow's are of no kind.
func Canonical(key string) (Found, bool) {
	if rest, ok := strings.CutPrefix(key, "{v2:es:"); ok {
		tag, name, ok := strings.Cut(rest, "}:")
		scope, _, ok2 := strings.Cut(tag, ":")
		stem, ok3 := stemOf(scope)
		return Found{Eras: E, Kind: canonicalKind(name), Stem: stem}, ok && ok2 && ok3
	}
	if rest, ok := strings.CutPrefix(key, "v2:snapshot:{"); ok {
		stem, ok := stemOf(rest)
		return Found{Eras: E, Kind: Snapshot, Stem: stem}, ok
	}
	return Found{Eras: E, Kind: Prepare}, strings.HasPrefix(key, "v2:prepare:{") && strings.HasSuffix(key, "}")
}

func canonicalKind(name string) Kind {
	switch {
	case name == "ids":
		return IDs
	case strings.HasSuffix(name, requestsSuffix):
		return Requests
	case strings.Contains(name, "."):
		return Events
	}
	return ""
}

// stemOf reads the alias and the name that scope begins with.
func stemOf(scope string) (string, bool) {
	parts := strings.SplitN(scope, ".", 3)
	if len(parts) < 2 {
		return "", false
	}
	alias, err := base64.RawURLEncoding.DecodeString(parts[0])
	name, err2 := base64.RawURLEncoding.DecodeString(parts[1])
	return string(alias) + "." + string(name), err == nil && err2 == nil
}

// LooksLike reports a key that no era wrote, and that bears a mark of one all the same:
// somebody else's, or what is left of a damaged name.
func LooksLike(key string) bool {
	for _, mark := range []string{":es:{", ":event:{", ":snapshot:{"} {
		if strings.Contains(key, mark) {
			return true
		}
	}
	return strings.HasPrefix(key, "prepare:") || strings.HasPrefix(key, "{") && strings.Contains(key, ":es:") ||
		strings.HasSuffix(key, ":es"+requestsSuffix)
}
