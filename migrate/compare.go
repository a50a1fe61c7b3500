package migrate

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/legacy"
)

func isNil(err error) bool { return errors.Is(err, redis.Nil) }

// sourceProblem compares what was read with the manifest.
func sourceProblem(rec *record, got content) *Problem {
	there, sum := got.sum()
	return unlike(rec, there, sum, got.err())
}

// unlike says why a source key is not what the manifest says; nil = it is.
func unlike(rec *record, there bool, sum string, err error) *Problem {
	switch {
	case isWrongType(err):
		return &Problem{Code: Changed, Key: rec.Key, Detail: "it is of another type now", Blocks: true}
	case !there:
		return &Problem{Code: Gone, Key: rec.Key, Detail: "the manifest lists it", Blocks: true}
	case sum != rec.Sum:
		return &Problem{Code: Changed, Key: rec.Key, Detail: "it is not as it was audited", Blocks: true}
	}
	return nil
}

// sum is the checksum of a whole key, and whether the key is there.
func (c content) sum() (there bool, sum string) {
	switch {
	case c.members != nil:
		o := newOrdered()
		for _, z := range c.members.Val() {
			o.add(member(z), z.Score)
		}
		return o.count > 0, o.sum()
	case c.set != nil:
		var u unordered
		for _, m := range c.set.Val() {
			u.add(m)
		}
		return u.count > 0, u.sum()
	case c.text != nil:
		return !isNil(c.text.Err()), sumOfText(c.text.Val())
	}
	sum, _ = sumOfFields(c.fields.Val())
	return len(c.fields.Val()) > 0, sum
}

// compareCopy says what is missing from the target, or why it is left alone.
func compareCopy(rec *record, source, target content) (*write, *Problem) {
	if p := sourceProblem(rec, source); p != nil {
		return nil, p
	}
	if isWrongType(target.err()) {
		return nil, &Problem{Code: TargetDiffers, Key: rec.Target, Detail: "it is of another type", Blocks: true}
	}
	w := &write{rec: rec}
	there, sum := target.sum()
	w.there = there && sum == rec.Sum
	switch rec.Kind {
	case legacy.Events:
		var p *Problem
		w.members, p = missing(rec, source.members.Val(), target.members.Val())
		if p != nil {
			return nil, p
		}
		w.reqs = requestsIn(rec, source.members.Val())
		return w, nil
	case legacy.Snapshot:
		w.text = source.text.Val()
	case legacy.Prepare:
		w.fields = source.fields.Val()
	}
	if there && !w.there && !partly(target, w.fields) {
		return nil, differs(rec)
	}
	return w, nil
}

// partly reports a reservation of which a run that was cut wrote some fields.
func partly(target content, fields map[string]string) bool {
	if target.fields == nil {
		return false
	}
	for field, value := range target.fields.Val() {
		if fields[field] != value {
			return false
		}
	}
	return true
}

func differs(rec *record) *Problem {
	return &Problem{Code: TargetDiffers, Key: rec.Target, Detail: fmt.Sprintf("it holds something else than %q", rec.Key), Blocks: true}
}

// missing are the commits that the target lacks, where it has no others than the source.
func missing(rec *record, source, target []redis.Z) ([]redis.Z, *Problem) {
	if len(target) == 0 {
		return source, nil
	}
	has := make(map[float64]string, len(target))
	for _, z := range target {
		has[z.Score] = member(z)
	}
	var lacks []redis.Z
	found := 0
	for _, z := range source {
		if text, ok := has[z.Score]; !ok {
			lacks = append(lacks, z)
		} else if text == member(z) {
			found++
		}
	}
	if found != len(target) {
		return nil, differs(rec)
	}
	return lacks, nil
}
