package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/redisrun"
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

// owner is who has the commits of an id.
type owner struct {
	tenant fingerprint
	key    fingerprint
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

// scanAll walks through every key of every master, and again where slots moved or a
// server ended meanwhile: a key that moved from a part not yet walked through to one
// that was would be missed.
func (r *auditor) scanAll(ctx context.Context) error {
	nodes, err := r.nodes(ctx)
	if err != nil {
		return err
	}
	for deadline := newDeadline(r.settle()); ; {
		pages := newPool(ctx, len(nodes)+1)
		for _, n := range nodes {
			pages.run(func(ctx context.Context) error { return r.scanNode(ctx, n) })
		}
		if err := pages.end(); err != nil {
			return err
		}
		after, err := r.nodes(ctx)
		if err != nil || same(nodes, after) {
			return err
		}
		if deadline.over() {
			return errMoving
		}
		nodes = after
	}
}

const scanCount = 1000

func (r *auditor) scanNode(ctx context.Context, n node) error {
	batches := newPool(ctx, r.parallel())
	err := scan(ctx, r.server, n, "", func(keys []string) error {
		found, canonical := r.sift(keys)
		if err := r.tell(canonical...); err != nil {
			return err
		}
		if err := r.meter.passed(batches.ctx, len(keys), 0); err != nil {
			return err
		}
		for batch := range slices.Chunk(found, batchKeys) {
			if !batches.run(func(ctx context.Context) error { return r.inspect(ctx, batch) }) {
				return context.Cause(batches.ctx)
			}
		}
		return nil
	})
	if failed := batches.end(); failed != nil {
		err = failed
	}
	return err
}

// scan calls f with the keys of a node, a page at a time. Pages may be empty.
func scan(ctx context.Context, s server, n node, match string, f func(keys []string) error) error {
	type page struct {
		keys []string
		next uint64
	}
	for cursor := uint64(0); ; {
		got, err := redisrun.Do(ctx, s.pace.Patience, func() (p page, err error) {
			p.keys, p.next, err = n.rdb.Scan(ctx, cursor, match, scanCount).Result()
			return p, err
		})
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			return &NodeError{n.addr, err}
		}
		if err := f(got.keys); err != nil {
			return err
		}
		if cursor = got.next; cursor == 0 {
			return nil
		}
	}
}

// sift keeps the keys whose names are those of an era; others that look so are records
// that say so.
func (r *auditor) sift(keys []string) (found []candidate, others []*record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Scanned += int64(len(keys))
	for _, key := range keys {
		if c, ok := legacy.Canonical(key); ok {
			if r.first(key) {
				r.stem(c.Stem).canonical++
				r.report.count(Line{Era: canonicalEra, Type: c.Stem, Kind: string(c.Kind), Keys: 1})
			}
			continue
		}
		f, ok := legacy.Recognize(key, "")
		switch {
		case !ok && !legacy.LooksLike(key) || !r.first(key):
		case !ok:
			others = append(others, r.untouched(r.problem(LookAlike, keyText(key), "no era wrote such a name")))
		default:
			found = append(found, candidate{key: key, found: f})
		}
	}
	return found, others
}

func (r *auditor) first(key string) bool {
	p := fingerprintOf(keyText(key))
	if _, ok := r.seen[p]; ok {
		return false
	}
	r.seen[p] = struct{}{}
	return true
}

// untouched is a record of a key that is no part of the migration.
func (r *auditor) untouched(p Problem) *record {
	return &record{Key: p.Key, Problems: []Problem{p}}
}

// tell writes records into the manifest and the report.
func (r *auditor) tell(records ...*record) error {
	lines := make([]line, len(records))
	r.mu.Lock()
	for i, rec := range records {
		r.judge(rec)
		r.register(rec)
		lines[i] = line{Record: rec}
	}
	r.mu.Unlock()
	if r.out == nil {
		return nil
	}
	return r.out.write(lines...)
}

// judge finds what a key's aggregate has elsewhere. The aggregate's later keys meet what
// its first one left.
func (r *auditor) judge(rec *record) {
	if rec.Kind != legacy.Events || rec.Aggregate == nil {
		return
	}
	before, ok := r.owners[rec.Aggregate.owner()]
	switch {
	case !ok:
	case before.tenant != fingerprintOf(rec.Aggregate.Tenant):
		rec.Problems = append(rec.Problems, r.problem(SeveralTenants, rec.Key, fmt.Sprintf("id %q is another tenant's, too", rec.Aggregate.ID)))
	case before.key != fingerprintOf(rec.Key):
		rec.Problems = append(rec.Problems, r.problem(SeveralSources, rec.Key, "the aggregate has commits under a key of another era, too"))
	}
}

func (i *identity) owner() fingerprint {
	return fingerprintOf(fmt.Sprintf("%q %q %q", i.id().Type.Scope(), i.Name, i.ID))
}

// register counts a record, of this run or of one before it.
func (r *auditor) register(rec *record) {
	r.seen[fingerprintOf(rec.Key)] = struct{}{}
	for _, p := range rec.Problems {
		r.report.add(p)
	}
	if rec.Beside != nil {
		r.register(rec.Beside)
	}
	if rec.Kind == "" {
		return
	}
	r.report.count(Line{Era: rec.Era, Type: rec.Stem, Kind: string(rec.Kind), Keys: 1, Members: rec.Count, Bytes: rec.Bytes})
	s := r.stem(rec.Stem)
	s.legacy = true
	if rec.Aggregate != nil {
		s.typ = rec.Aggregate.id().Type
	}
	switch {
	case rec.Kind == legacy.IDs:
		s.indexed += rec.Count
	case rec.Kind == legacy.Events && rec.Era == legacy.D.String():
		s.streams++
	case rec.Kind == legacy.Events && rec.Era != legacy.A.String():
		s.requests.join(rec.RequestSum, rec.Requests)
	}
	if rec.Kind == legacy.Events && rec.Aggregate != nil {
		o := owner{fingerprintOf(rec.Aggregate.Tenant), fingerprintOf(rec.Key)}
		if _, ok := r.owners[rec.Aggregate.owner()]; !ok {
			r.owners[rec.Aggregate.owner()] = o
		}
	}
}

// types lists the aggregate types that the documents named.
func (r *auditor) types() {
	for _, s := range r.stems {
		if s.typ != (es.AggregateType{}) && !slices.Contains(r.report.Types, s.typ) {
			r.report.Types = append(r.report.Types, s.typ)
		}
	}
	slices.SortFunc(r.report.Types, func(a, b es.AggregateType) int { return strings.Compare(a.String(), b.String()) })
}

// size is how many keys there are, about.
func (r *auditor) size(ctx context.Context) (int64, error) {
	n, err := do(ctx, r.server, func() (int64, error) { return r.rdb.DBSize(ctx).Result() })
	var reply redis.Error
	if errors.As(err, &reply) && redisrun.Word(err) == "NOPERM" {
		return 0, nil // only the estimate is missed
	}
	return n, err
}
