package migrate

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
)

// Audit finds all keys of older layouts and everything about them that would keep them
// from being copied. It writes nothing to the server.
type Audit struct {
	Pace
	// Types are the aggregate types to migrate, as the new service declares them. Defaults
	// to all that are found. Era A did not say whether it wrote a context's name or its
	// alias, so a context with an alias that has keys of era A needs its types here.
	Types []es.AggregateType
	// Names says which set each reservation belongs to.
	Names Names
	// Accept are the codes of problems that shall not block; see there what that means.
	Accept []Code
	// KeysOnly looks at names, types and cardinalities and reads no document: a first
	// look. Only what shows in those is found, and there is no manifest.
	KeysOnly bool
}

// Run audits what source leads to and writes the manifest to f, which is empty or holds
// what a run with the same knobs wrote before it was cut; what stands there is not read
// from the server again. Without a file (nil) only the report is made. It keeps about
// 300 bytes in memory for each key of an older layout.
//
// An error means that something was not looked at; a [NodeError] names the server.
func (a Audit) Run(ctx context.Context, source redis.UniversalClient, f File) (Report, error) {
	if a.KeysOnly && f != nil {
		return Report{}, es.Invalid("an audit of keys only makes no manifest")
	}
	for _, code := range a.Accept {
		if !slices.Contains(acceptable, code) && !slices.Contains(notes, code) {
			return Report{}, es.Invalid("problem %q cannot be accepted", code)
		}
	}
	r := &auditor{
		Audit: a, finder: finder{a.Accept}, server: server{source, a.Pace},
		seen: map[fingerprint]struct{}{}, owners: map[fingerprint]owner{}, stems: map[string]*stem{},
	}
	err := r.run(ctx, f)
	if err != nil {
		err = fmt.Errorf("audit: %w", err)
	}
	r.report.Finished = err == nil
	return r.report, err
}

// auditor is one audit on its way.
type auditor struct {
	Audit
	finder
	server
	meter *meter
	out   *manifestWriter // nil = no manifest
	place place

	snapshots snapshots

	mu     sync.Mutex
	report Report
	// seen are the keys that have been looked at: SCAN may return one twice.
	seen map[fingerprint]struct{}
	// owners are the aggregates that have commits, by type and id.
	owners map[fingerprint]owner
	stems  map[string]*stem
	// sharedKeys are era C's sets, which are compared when all commits are known.
	sharedKeys []string
}

// stem is what is known of one aggregate type as a layout writes it.
type stem struct {
	typ       es.AggregateType // as the documents say; zero = none was read
	shared    bool             // era C's set exists
	asked     bool             // shared is known
	legacy    bool             // it has keys of older layouts
	canonical int64            // keys of the canonical layout
	requests  unordered        // of the commits of eras B and C
	indexed   int64            // members of era D's indexes
	streams   int64            // streams of era D
}

func (r *auditor) stem(name string) *stem {
	s := r.stems[name]
	if s == nil {
		s = &stem{}
		r.stems[name] = s
	}
	return s
}

func (r *auditor) run(ctx context.Context, f File) (err error) {
	if r.place, err = r.look(ctx); err != nil {
		return err
	}
	if f != nil {
		h := head{Format: manifestFormat, Source: r.place, Types: r.Types, Accept: r.Accept, Names: r.Names.sum}
		if r.out, err = begin(f, h, func(old *record) { r.register(old) }); err != nil {
			return err
		}
	}
	of, err := r.size(ctx)
	if err != nil {
		return err
	}
	r.meter = newMeter("audit", r.Pace, of)
	if err := r.scanAll(ctx); err != nil {
		return err
	}
	if !r.KeysOnly {
		if err := r.compareWhole(ctx); err != nil {
			return err
		}
	}
	if err := r.otherDatabases(ctx); err != nil {
		return err
	}
	r.types()
	if r.out != nil {
		r.report.Finished = true
		r.report.Manifest, err = r.out.close(r.report)
	}
	return err
}
