// Package legacy knows what the keys of Wow's older layouts look like, for the stores'
// guard and for the migration.
package legacy

import (
	"strconv"
	"strings"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// Eras is a set of older layouts. A key may be the same in several.
type Eras uint8

// The eras, by the versions of Wow that wrote them.
const (
	A Eras = 1 << iota // 1.14.0
	B                  // 1.15.0 to 3.15.5
	C                  // 3.16.0 to 8.6.0
	D                  // 8.8.0 and 8.8.1
)

// String is the letters of the eras, such as "BC".
func (e Eras) String() string {
	var letters strings.Builder
	for i, letter := range "ABCDE" {
		if e&(1<<i) != 0 {
			letters.WriteRune(letter)
		}
	}
	return letters.String()
}

// Kind is what a key holds.
type Kind string

// The kinds, with their Redis types.
const (
	Events         Kind = "events"          // zset
	Requests       Kind = "requests"        // set, of one aggregate
	SharedRequests Kind = "shared requests" // set, of all aggregates of a type
	IDs            Kind = "ids"             // zset
	Snapshot       Kind = "snapshot"        // string
	Prepare        Kind = "prepare"         // hash; the key does not tell the name of its set
)

// Found is what a key's text and type tell. Whose it is, only the JSON in it tells for
// sure: ids and tenants may hold every character that separates the parts.
type Found struct {
	Eras Eras
	Kind Kind
	// Stem is the aggregate type as the layout writes it; "" for a [Prepare].
	Stem string
}

// Of reports whether the key is written as those of t are.
func (f Found) Of(t es.AggregateType) bool {
	if f.Eras&A != 0 && (f.Stem == t.Scope()+":"+t.Name || f.Stem == t.Context+":"+t.Name) {
		return true
	}
	return f.Eras&^A != 0 && f.Stem == t.String()
}

// Recognize tells a legacy key from any other. redisType is what TYPE answers; "" =
// not asked, and then a suffix decides.
func Recognize(key, redisType string) (Found, bool) {
	before, rest, ok := strings.Cut(key, "{")
	if !ok {
		stem, ok := strings.CutSuffix(key, ":es:req_idx")
		return found(C, SharedRequests, stem, ok, redisType)
	}
	if before == "" {
		return eraD(rest, redisType)
	}
	if before == "prepare:" {
		return found(A|B|C|D, Prepare, "", len(rest) > 1 && strings.HasSuffix(rest, "}"), redisType)
	}
	if stem, ok := strings.CutSuffix(before, ":event:"); ok && strings.Contains(stem, ":") {
		return stream(A, stem, rest, redisType)
	}
	if stem, ok := strings.CutSuffix(before, ":es:"); ok {
		return stream(B|C, stem, rest, redisType)
	}
	if stem, ok := strings.CutSuffix(before, ":snapshot:"); ok {
		return snapshot(stem, rest, redisType)
	}
	return Found{}, false
}

// eraD reads what follows the brace of "{<stem>:es:<bucket>}:<identity>".
func eraD(rest, redisType string) (Found, bool) {
	tag, name, ok := strings.Cut(rest, "}:")
	i := strings.LastIndex(tag, ":es:")
	if !ok || i < 1 || name == "" || !isBucket(tag[i+len(":es:"):]) {
		return Found{}, false
	}
	switch stem := tag[:i]; {
	case name == "ids":
		return found(D, IDs, stem, true, redisType)
	case requests(name, redisType):
		return found(D, Requests, stem, true, redisType)
	default:
		return found(D, Events, stem, strings.Contains(name, "@"), redisType)
	}
}

// stream reads what follows the brace of "<stem>:es:{<id>@<tenant>}", with or without
// a suffix. From era C on, an aggregate has no set of its own.
func stream(eras Eras, stem, rest, redisType string) (Found, bool) {
	if requests(rest, redisType) {
		identity, ok := strings.CutSuffix(rest, "}:req_idx")
		return found(eras&^C, Requests, stem, ok && strings.Contains(identity, "@"), redisType)
	}
	return found(eras, Events, stem, strings.Contains(rest, "@") && strings.HasSuffix(rest, "}"), redisType)
}

// snapshot reads what follows the brace of "<stem>:snapshot:{<id>}"; from era C on the
// tenant stands behind an @, which an older id may hold itself.
func snapshot(stem, rest, redisType string) (Found, bool) {
	var eras Eras
	if strings.Contains(stem, ":") {
		eras |= A
	}
	if strings.Contains(stem, ".") {
		eras |= B
		if strings.Contains(rest, "@") {
			eras |= C | D
		}
	}
	return found(eras, Snapshot, stem, len(rest) > 1 && strings.HasSuffix(rest, "}"), redisType)
}

// requests reports whether the key is a set of request ids: by its type where known.
func requests(name, redisType string) bool {
	return redisType == "set" || redisType == "" && strings.HasSuffix(name, ":req_idx")
}

func isBucket(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n < rediskey.Buckets && strconv.Itoa(n) == s
}

func found(eras Eras, kind Kind, stem string, ok bool, redisType string) (Found, bool) {
	if !ok || eras == 0 || eras&A == 0 && !strings.Contains(stem, ".") || redisType != "" && redisType != kind.redisType() {
		return Found{}, false
	}
	return Found{Eras: eras, Kind: kind, Stem: stem}, true
}

func (k Kind) redisType() string {
	switch k {
	case Requests, SharedRequests:
		return "set"
	case Snapshot:
		return "string"
	case Prepare:
		return "hash"
	}
	return "zset"
}
