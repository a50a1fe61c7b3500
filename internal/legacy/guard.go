package legacy

import (
	"strconv"
	"strings"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// Sentinels are keys of which at least one exists wherever eras C or D stored a commit
// of t. They are those that Wow's own guard asks for.
func Sentinels(t es.AggregateType) []string {
	keys := make([]string, 0, 1+rediskey.Buckets)
	keys = append(keys, t.String()+":es:req_idx")
	for bucket := range rediskey.Buckets {
		keys = append(keys, "{"+t.String()+":es:"+strconv.Itoa(bucket)+"}:ids")
	}
	return keys
}

// ScanPatterns are patterns for SCAN's MATCH that find every key of t but
// [SharedRequests], in all eras: eras A and B have no sentinel, and a snapshot may be all
// that is left. They find some other keys too: ask [Recognize] and [Found.Of].
func ScanPatterns(t es.AggregateType) []string {
	name := escape(t.Name)
	patterns := []string{
		escape(t.Scope()) + "[.:]" + name + ":*{*",
		`{` + escape(t.String()) + ":es:*",
	}
	if t.Scope() != t.Context { // whether era A wrote the alias or the name is not known
		patterns = append(patterns, escape(t.Context)+":"+name+":*{*")
	}
	return patterns
}

// escape makes every character of s stand for itself in a pattern of SCAN.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(s)
}

// StreamPattern is a pattern for SCAN's MATCH that finds the commits of eras B and C of
// the type that stem names, and little else.
func StreamPattern(stem string) string { return escape(stem) + ":es:{*" }
