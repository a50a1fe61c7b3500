package migrate

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// compareWhole finds what only shows when all keys are known, and writes what belongs to
// a type as a whole.
func (r *auditor) compareWhole(ctx context.Context) error {
	slices.Sort(r.sharedKeys)
	for _, key := range r.sharedKeys {
		if err := r.sharedRequests(ctx, key); err != nil {
			return err
		}
	}
	names := make([]string, 0, len(r.stems))
	for name, s := range r.stems {
		if s.legacy {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var types []es.AggregateType
	for _, name := range names {
		s := r.stems[name]
		if s.indexed < s.streams {
			detail := fmt.Sprintf("%d of %d aggregates of era D are not in its indexes", s.streams-s.indexed, s.streams)
			if err := r.found(r.problem(IndexMissing, name, detail)); err != nil {
				return err
			}
		}
		if s.typ != (es.AggregateType{}) && !slices.Contains(types, s.typ) {
			types = append(types, s.typ)
		}
	}
	for _, t := range types {
		if n := r.canonicalOf(t); n > 0 {
			if err := r.found(r.problem(CanonicalPresent, t.String(), fmt.Sprintf("%d keys of the canonical layout are there already", n))); err != nil {
				return err
			}
		}
		if err := r.backlog(ctx, t); err != nil {
			return err
		}
	}
	return r.preparedAlready()
}

func (r *auditor) canonicalOf(t es.AggregateType) int64 {
	if s := r.stems[t.String()]; s != nil {
		return s.canonical
	}
	return 0
}

// preparedAlready finds reservations of both layouts side by side.
func (r *auditor) preparedAlready() error {
	s := r.stems[""] // reservations do not tell a type
	if s == nil || !s.legacy || s.canonical == 0 {
		return nil
	}
	return r.found(r.problem(CanonicalPresent, "", fmt.Sprintf("%d reservations of the canonical layout are there already", s.canonical)))
}

// found tells a problem that belongs to no single key.
func (r *auditor) found(p Problem) error {
	r.report.add(p)
	if r.out == nil {
		return nil
	}
	return r.out.write(line{Problem: &p})
}

// sharedRequests is the record of era C's set of a type's request ids, compared with all
// commits of the type.
func (r *auditor) sharedRequests(ctx context.Context, key string) error {
	f, _ := legacy.Recognize(key, "set")
	rec := candidate{key: key, found: f}.record()
	var u unordered
	err := r.scanSet(ctx, key, func(page []string) error {
		before := u.bytes
		for _, id := range page {
			u.add(id)
		}
		return r.meter.passed(ctx, 0, u.bytes-before)
	})
	if err != nil {
		return err
	}
	rec.Count, rec.Bytes, rec.Sum = u.count, u.bytes, u.sum()
	if s := r.stem(f.Stem); s.requests.sum() != u.sum() || s.requests.count != u.count {
		if err := r.compareShared(ctx, rec); err != nil {
			return err
		}
	}
	return r.tell(rec)
}

// compareShared finds which request ids differ. A commit's id may also stand in era B's
// set beside its stream, which a store that was upgraded has, too.
func (r *auditor) compareShared(ctx context.Context, rec *record) error {
	known, err := r.requestsOf(ctx, rec.Stem)
	if err != nil {
		return err
	}
	lost, lostOne := 0, ""
	err = r.scanSet(ctx, rec.Key, func(page []string) error {
		for _, id := range page {
			p := fingerprintOf(id)
			if _, ok := known[p]; ok {
				known[p] = true
			} else if lost++; lost == 1 {
				lostOne = id
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	missing := 0
	for _, has := range known {
		if !has {
			missing++
		}
	}
	if lost > 0 {
		rec.Problems = append(rec.Problems, r.problem(RequestWithoutEvent, rec.Key, fmt.Sprintf("%d request ids that no commit has, such as %q", lost, lostOne)))
	}
	if missing > 0 {
		rec.Problems = append(rec.Problems, r.told(EventWithoutRequest, rec.Key, fmt.Sprintf("%d commits' request ids are in no set", missing)))
	}
	return nil
}

// requestsOf are the request ids of all commits of a type in eras B and C; true = it
// stands in the set beside its stream.
func (r *auditor) requestsOf(ctx context.Context, stem string) (map[fingerprint]bool, error) {
	known := map[fingerprint]bool{}
	nodes, err := r.nodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		err := scan(ctx, r.server, n, legacy.StreamPattern(stem), func(keys []string) error {
			for _, key := range keys {
				if f, ok := legacy.Recognize(key, "zset"); !ok || f.Stem != stem {
					continue
				}
				if err := r.addRequests(ctx, key, known); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return known, nil
}

func (r *auditor) addRequests(ctx context.Context, key string, known map[fingerprint]bool) error {
	err := r.pages(ctx, key, 1, costBytes, func(page []redis.Z) error {
		for i := range page {
			if c, err := codec.DecodeCommit(bytesOf(member(page[i]))); err == nil {
				known[fingerprintOf(c.RequestID)] = false
			}
		}
		return nil
	})
	if isWrongType(err) {
		return nil // a set of requests, whose key may look like a stream's
	}
	if err != nil {
		return err
	}
	return r.scanSet(ctx, key+requestsSuffix, func(page []string) error {
		for _, id := range page {
			if p := fingerprintOf(id); hasKey(known, p) {
				known[p] = true
			}
		}
		return nil
	})
}

func hasKey[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

func isWrongType(err error) bool { return redisrun.Word(err) == "WRONGTYPE" }
