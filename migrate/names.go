package migrate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/headwater-go/headwater/es"
)

// Names says which set each reservation belongs to, which older keys do not tell.
type Names struct {
	exact    map[string]string
	prefixes []prefix // the longest first
	sum      string
}

type prefix struct{ text, name string }

// ParseNames reads an operator's file: on each line the name of a set, a tab, and a key.
// A key that ends in * stands for all that begin so, and * alone for all others; a key in
// double quotes is a JSON string and stands for itself. An exact key goes before a prefix,
// a longer prefix before a shorter. Empty lines and those that begin with # say nothing.
// What cannot be read, or names a key twice, is an [es.ErrInvalid].
func ParseNames(r io.Reader) (Names, error) {
	n := Names{exact: map[string]string{}}
	var all unordered
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for number := 1; in.Scan(); number++ {
		text := strings.TrimSuffix(in.Text(), "\r")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if err := n.add(text); err != nil {
			return Names{}, fmt.Errorf("names, line %d: %w", number, err)
		}
		all.add(text)
	}
	if err := in.Err(); err != nil {
		return Names{}, es.Invalid("names: %w", err)
	}
	slices.SortFunc(n.prefixes, func(a, b prefix) int { return len(b.text) - len(a.text) })
	n.sum = all.sum()
	return n, nil
}

func (n *Names) add(text string) error {
	name, key, ok := strings.Cut(text, "\t")
	if !ok || name == "" || key == "" {
		return es.Invalid("%q is not a name, a tab and a key", text)
	}
	if begin, ok := strings.CutSuffix(key, "*"); ok {
		if slices.ContainsFunc(n.prefixes, func(p prefix) bool { return p.text == begin }) {
			return es.Invalid("%q is named twice", key)
		}
		n.prefixes = append(n.prefixes, prefix{begin, name})
		return nil
	}
	if strings.HasPrefix(key, `"`) {
		if err := json.Unmarshal([]byte(key), &key); err != nil {
			return es.Invalid("%s is no JSON string", key)
		}
	}
	if _, ok := n.exact[key]; ok {
		return es.Invalid("%q is named twice", key)
	}
	n.exact[key] = name
	return nil
}

// of is the name for a key.
func (n Names) of(key string) (string, bool) {
	if name, ok := n.exact[key]; ok {
		return name, true
	}
	for _, p := range n.prefixes {
		if strings.HasPrefix(key, p.text) {
			return p.name, true
		}
	}
	return "", false
}
