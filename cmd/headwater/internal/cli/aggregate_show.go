package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
)

type aggregateView struct {
	Type        string        `json:"type"`
	ID          string        `json:"id"`
	Tenant      string        `json:"tenant"`
	Version     int64         `json:"version"`
	Commits     int64         `json:"commits"`
	Requests    int64         `json:"requests"`
	Bytes       int64         `json:"bytes"`
	First       string        `json:"first_commit"`
	Last        string        `json:"last_commit"`
	Indexed     bool          `json:"indexed"`
	Unpublished int64         `json:"unpublished_from"`
	Snapshot    *snapshotView `json:"snapshot"`
	Key         string        `json:"key"`
	Problems    []string      `json:"problems"`
}

func (a *app) showAggregate(ctx context.Context, id es.AggregateID) error {
	v, err := a.readAggregate(ctx, id)
	if err != nil {
		return err
	}
	return a.show(v, func(w io.Writer) {
		snapshot := "none"
		if v.Snapshot != nil {
			snapshot = v.Snapshot.line()
		}
		unpublished := "nothing"
		if v.Unpublished > 0 {
			unpublished = fmt.Sprintf("from version %d", v.Unpublished)
		}
		output.Pairs(w, "type", v.Type, "id", v.ID, "tenant", v.Tenant, "version", v.Version, "commits", v.Commits, "requests", v.Requests,
			"size", size(v.Bytes), "first commit", output.Or(v.First), "last commit", output.Or(v.Last), "snapshot", snapshot,
			"unpublished", unpublished, "key", v.Key)
		for _, p := range v.Problems {
			fmt.Fprintln(w, a.colour("31", "problem:"), output.Clean(p))
		}
	})
}

func (a *app) readAggregate(ctx context.Context, id es.AggregateID) (*aggregateView, error) {
	key := rediskey.EventKeys(id)
	var first, last *redis.ZSliceCmd
	var commits, requests, bytes *redis.IntCmd
	var indexed, note *redis.FloatCmd
	_, err := redisrun.Do(ctx, 0, func() ([]redis.Cmder, error) {
		return a.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			first, last = p.ZRangeWithScores(ctx, key.Stream, 0, 0), p.ZRevRangeWithScores(ctx, key.Stream, 0, 0)
			commits, requests, bytes = p.ZCard(ctx, key.Stream), p.SCard(ctx, key.Requests), p.MemoryUsage(ctx, key.Stream)
			indexed, note = p.ZScore(ctx, key.IDs, key.Member), p.ZScore(ctx, key.Outbox, key.Identity)
			return nil
		})
	})
	if err := errors.Join(first.Err(), last.Err(), commits.Err(), requests.Err()); err != nil {
		return nil, redisrun.Explain(err)
	}
	if err != nil && !errors.Is(err, redis.Nil) && bytes.Err() == nil {
		return nil, err
	}
	v := &aggregateView{
		Type: inspect.Format(id.Type), ID: id.ID, Tenant: id.Tenant, Commits: commits.Val(), Requests: requests.Val(), Bytes: bytes.Val(),
		Indexed: indexed.Err() == nil, Unpublished: int64(note.Val()), Key: key.Stream, Problems: []string{},
	}
	if v.Snapshot, err = readSnapshot(ctx, a.rdb, id); err != nil {
		return nil, err
	}
	if v.Commits == 0 && !v.Indexed && v.Snapshot == nil {
		return nil, &es.Error{Op: "show", Aggregate: id, Err: es.ErrNotFound}
	}
	v.First, _ = commitTime(first.Val())
	v.Last, v.Version = commitTime(last.Val())
	v.judge()
	return v, nil
}

// commitTime is when the one commit of a page was made, and its version.
func commitTime(page []redis.Z) (at string, version int64) {
	if len(page) == 0 {
		return "", 0
	}
	text, _ := page[0].Member.(string)
	if c, err := decodeCommit([]byte(text)); err == nil {
		at = output.Time(c.CreateTime)
	}
	return at, int64(page[0].Score)
}

// judge finds what contradicts itself.
func (v *aggregateView) judge() {
	add := func(format string, args ...any) { v.Problems = append(v.Problems, fmt.Sprintf(format, args...)) }
	if v.Commits != v.Version {
		add("%d commits are stored and the highest version is %d", v.Commits, v.Version)
	}
	if v.Requests != v.Commits {
		add("%d commits are stored and %d request ids", v.Commits, v.Requests)
	}
	if v.Indexed != (v.Commits > 0) {
		add("the index and the commits do not agree on whether the aggregate exists")
	}
	if s := v.Snapshot; s != nil && int64(s.Version) > v.Version {
		add("the snapshot is of version %d, ahead of the commits", s.Version)
	}
	if s := v.Snapshot; s != nil && s.Problem != "" {
		add("the snapshot cannot be read: %s", s.Problem)
	}
}
