package migrate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/headwater-go/headwater/es"
)

// Report is what an audit found.
type Report struct {
	// Manifest is the manifest's checksum, "" where none was written to its end.
	Manifest string `json:"manifest,omitempty"`
	// Inventory is all keys of all layouts, by era, type and kind.
	Inventory []Line `json:"inventory"`
	// Types are the aggregate types of the older layouts, as their documents name them.
	Types []es.AggregateType `json:"types,omitempty"`
	// Scanned counts all keys that were looked at, whosever they are.
	Scanned int64 `json:"scanned"`
	// Finished says that every key was looked at.
	Finished bool `json:"finished"`
	Problems
}

// Line counts the keys of one era, type and kind.
type Line struct {
	// Era is one or more of the letters A to D, or E for the canonical layout.
	Era string `json:"era"`
	// Type is the aggregate type as the layout writes it; "" for reservations.
	Type string `json:"type,omitempty"`
	// Kind is events, requests, shared requests, ids, snapshot or prepare.
	Kind string `json:"kind"`
	Keys int64  `json:"keys"`
	// Members counts commits, request ids, index members or fields, and Bytes their length.
	// Both are 0 for the canonical layout, which is not read.
	Members int64 `json:"members"`
	Bytes   int64 `json:"bytes"`
}

const canonicalEra = "E"

// Legacy counts the keys of older layouts.
func (r Report) Legacy() (keys int64) {
	for _, l := range r.Inventory {
		if l.Era != canonicalEra {
			keys += l.Keys
		}
	}
	return keys
}

// Outcome is the exit code.
func (r Report) Outcome() Outcome {
	switch {
	case !r.Finished:
		return Unfinished
	case r.Blocking > 0:
		return Blocked
	case r.Legacy() > 0:
		return Migratable
	}
	return Clean
}

// Write writes the report for people.
func (r Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "era\ttype\tkind\tkeys\tmembers\tbytes\t")
	for _, l := range r.Inventory {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t\n", l.Era, cmp.Or(l.Type, "-"), l.Kind, l.Keys, l.Members, l.Bytes)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\n%d keys of older layouts among %d keys\n", r.Legacy(), r.Scanned); err != nil {
		return err
	}
	return r.write(w)
}

// Write writes the result for people.
func (r Result) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "manifest %s\n%d aggregates, %d events, %d request ids, %d snapshots, %d reservations; %d left out\n",
		r.Manifest, r.Aggregates, r.Events, r.Requests, r.Snapshots, r.Prepared, r.Left)
	if err != nil {
		return err
	}
	return r.write(w)
}

func (p Problems) write(w io.Writer) error {
	codes := make([]Code, 0, len(p.ByCode))
	for c := range p.ByCode {
		codes = append(codes, c)
	}
	slices.Sort(codes)
	for _, c := range codes {
		if _, err := fmt.Fprintf(w, "\n%s: %d\n", c, p.ByCode[c]); err != nil {
			return err
		}
		if err := p.writeOf(w, c); err != nil {
			return err
		}
	}
	return nil
}

// shown is how many problems of one code are written for people.
const shown = 10

func (p Problems) writeOf(w io.Writer, c Code) error {
	n := 0
	for _, problem := range p.Problems {
		if problem.Code != c {
			continue
		}
		if n++; n > shown {
			_, err := fmt.Fprintln(w, "  …")
			return err
		}
		mark := "note  "
		if problem.Blocks {
			mark = "BLOCKS"
		}
		if _, err := fmt.Fprintf(w, "  %s %q %s\n", mark, problem.Key, problem.Detail); err != nil {
			return err
		}
	}
	return nil
}

// count adds keys to the line of their kind.
func (r *Report) count(l Line) {
	at, found := slices.BinarySearchFunc(r.Inventory, l, compareLines)
	if !found {
		r.Inventory = slices.Insert(r.Inventory, at, Line{Era: l.Era, Type: l.Type, Kind: l.Kind})
	}
	r.Inventory[at].Keys += l.Keys
	r.Inventory[at].Members += l.Members
	r.Inventory[at].Bytes += l.Bytes
}

func compareLines(a, b Line) int {
	return cmp.Or(cmp.Compare(a.Era, b.Era), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Kind, b.Kind))
}
