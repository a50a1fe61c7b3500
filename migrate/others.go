package migrate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// index is one of era D's ids, whose members must have commits.
func (r *auditor) index(ctx context.Context, c candidate, got content, large bool) (*record, error) {
	sum, lost, lostOne := newOrdered(), 0, ""
	tag := strings.TrimSuffix(c.key, "ids")
	add := func(page []redis.Z) error {
		there := make([]*redis.IntCmd, len(page))
		err := r.pipeline(ctx, func(p redis.Pipeliner) {
			for i := range page {
				id, tenant, _ := strings.Cut(member(page[i]), "\x00")
				there[i] = p.Exists(ctx, tag+id+"@"+tenant)
			}
		})
		if err != nil {
			return err
		}
		for i := range page {
			sum.add(member(page[i]), page[i].Score)
			if err := there[i].Err(); err != nil {
				return r.explain(ctx, err)
			}
			if there[i].Val() > 0 {
				continue
			}
			if lost++; lost == 1 {
				lostOne = member(page[i])
			}
		}
		return nil
	}
	var err error
	if large {
		err = r.pages(ctx, c.key, 1000, c.size, add)
	} else if members := got.members.Val(); len(members) > 0 {
		err = add(members)
	}
	if err != nil {
		return nil, err
	}
	rec := c.record()
	rec.Count, rec.Bytes, rec.Sum = sum.count, sum.bytes, sum.sum()
	if lost > 0 {
		rec.Problems = append(rec.Problems, r.problem(IndexWithoutEvents, c.key, fmt.Sprintf("%d aggregates without commits, such as %q", lost, lostOne)))
	}
	return rec, nil
}

// snapshot is the record of a snapshot, without what its aggregate's other keys say.
func (r *auditor) snapshot(c candidate, text string) *record {
	rec := c.record()
	rec.Count, rec.Bytes, rec.Sum = 1, int64(len(text)), sumOfText(text)
	meta, err := r.snapshots.decode(text)
	if err != nil {
		if foreign(text) {
			return r.untouched(r.problem(Foreign, c.key, "it is no document of Wow's"))
		}
		rec.Problems = append(rec.Problems, r.problem(Unreadable, c.key, err.Error()))
		return rec
	}
	for _, era := range []legacy.Eras{legacy.A, legacy.B, legacy.C} {
		if c.found.Eras&era == 0 {
			continue
		}
		f := c.found
		f.Eras = era
		source, target, ok := r.resolve(f, meta.Aggregate)
		if !ok || legacy.SnapshotKey(era, source) != c.key {
			continue
		}
		if rec.Era = era.String(); era == legacy.C {
			rec.Era = (legacy.C | legacy.D).String()
		}
		rec.Aggregate, rec.Target = identityOf(target), rediskey.Snapshot(target)
		rec.version = meta.Version
		if err := target.Validate(); err != nil {
			rec.Problems = append(rec.Problems, r.problem(Unreadable, c.key, err.Error()))
		}
		return rec
	}
	rec.Problems = append(rec.Problems, r.problem(WrongIdentity, c.key, "it is a snapshot of "+meta.Aggregate.String()))
	return rec
}

// beside is what is asked of the keys of a snapshot's aggregate.
type beside struct {
	commits, at []*redis.IntCmd // in the streams of each era: all, and those of the snapshot's version
	newer       *redis.IntCmd   // snapshots of the same aggregate in later layouts
}

// compareSnapshots meets each snapshot with its aggregate's commits and other snapshots.
func (r *auditor) compareSnapshots(ctx context.Context, records []*record) error {
	isSnapshot := func(rec *record) bool { return rec.Kind == legacy.Snapshot && rec.Target != "" }
	if !slices.ContainsFunc(records, isSnapshot) {
		return nil
	}
	asked := make([]beside, len(records))
	err := r.pipeline(ctx, func(p redis.Pipeliner) {
		for i, rec := range records {
			if isSnapshot(rec) {
				asked[i] = askBeside(ctx, p, rec, r.sourceOf(rec))
			}
		}
	})
	if err != nil {
		return err
	}
	for i, rec := range records {
		if asked[i].commits == nil {
			continue
		}
		if err := r.judgeSnapshot(ctx, rec, asked[i]); err != nil {
			return err
		}
	}
	return nil
}

// sourceOf is a record's aggregate as era A may have written it.
func (r *auditor) sourceOf(rec *record) es.AggregateID {
	id := rec.Aggregate.id()
	if alias, ok := strings.CutSuffix(rec.Stem, ":"+id.Type.Name); ok && rec.Era == legacy.A.String() {
		id.Type.Alias = alias
	}
	return id
}

func askBeside(ctx context.Context, p redis.Pipeliner, rec *record, source es.AggregateID) (b beside) {
	version := strconv.Itoa(rec.version)
	id := rec.Aggregate.id()
	for _, key := range []string{legacy.EventsKey(legacy.A, source), legacy.EventsKey(legacy.B, id), legacy.EventsKey(legacy.D, id)} {
		b.commits = append(b.commits, p.ZCard(ctx, key))
		b.at = append(b.at, p.ZCount(ctx, key, version, version))
	}
	switch rec.Era {
	case legacy.A.String():
		b.newer = p.Exists(ctx, legacy.SnapshotKey(legacy.B, id))
	case legacy.B.String():
		b.newer = p.Exists(ctx, legacy.SnapshotKey(legacy.C, id))
	}
	return b
}

func (r *auditor) judgeSnapshot(ctx context.Context, rec *record, b beside) error {
	commits, at := int64(0), int64(0)
	for i := range b.commits {
		for _, c := range []*redis.IntCmd{b.commits[i], b.at[i]} {
			if err := c.Err(); err != nil && !isWrongType(err) {
				return r.explain(ctx, err)
			}
		}
		commits += b.commits[i].Val()
		at += b.at[i].Val()
	}
	var p Problem
	switch {
	case b.newer != nil && b.newer.Val() > 0:
		p = r.problem(Superseded, rec.Key, "a later layout's snapshot is there, too")
	case rec.version == 0 || at > 0:
		return nil
	case commits == 0:
		p = r.problem(OrphanSnapshot, rec.Key, "there are no commits of "+rec.Aggregate.id().String())
	default:
		p = r.problem(SnapshotAhead, rec.Key, fmt.Sprintf("there is no commit of version %d", rec.version))
	}
	rec.Problems = append(rec.Problems, p)
	rec.Target, rec.Left = "", p.Code != Superseded
	return nil
}

// prepared is the record of a reservation.
func (r *auditor) prepared(ctx context.Context, c candidate, fields map[string]string) (*record, error) {
	_, ok := fields["value"]
	end, err := strconv.ParseInt(fields["ttlAt"], 10, 64)
	if !ok || err != nil {
		return r.untouched(r.problem(Foreign, c.key, "it is no reservation")), nil //nolint:nilerr // that is what it says
	}
	rec := c.record()
	rec.Count = int64(len(fields))
	rec.Sum, rec.Bytes = sumOfFields(fields)
	key := strings.TrimSuffix(strings.TrimPrefix(c.key, "prepare:{"), "}")
	name, ok := r.Names.of(key)
	if ok {
		rec.Name, rec.Target = name, rediskey.Prepare(name, key)
		return rec, nil
	}
	now, err := do(ctx, r.server, func() (time.Time, error) { return r.rdb.Time(ctx).Result() })
	if err != nil {
		return nil, err
	}
	rec.Left = true
	p := r.problem(PrepareWithoutName, c.key, "")
	if end <= now.UnixMilli() {
		p = r.told(PrepareWithoutName, c.key, "it has ended")
	}
	rec.Problems = append(rec.Problems, p)
	return rec, nil
}
