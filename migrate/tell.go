package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
)

// owner is who has the commits of an id.
type owner struct {
	tenant fingerprint
	key    fingerprint
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
