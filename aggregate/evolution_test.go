package aggregate_test

import (
	"context"
	"encoding/json"
	"iter"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

// stepped is an event that only a newer, or only an older, program knows.
type stepped struct{ Count int }

func (stepped) EventName() string { return "stepped" }

// another is a site's repository whose program decides steps and knows those types.
func another(s site, types es.Types) *repository {
	r := s.repository()
	codec := wire.JSON(types)
	r.Store, r.Snapshots = eventstore.New(s.rdb, codec), snapshot.New[counter](s.rdb, codec)
	r.Decider.Decide = func(_ counter, c es.Command) (es.Events, error) {
		body, _ := c.Body.(add)
		return es.Events{stepped{body.By}}, nil
	}
	return r
}

func withSteps(s site) *repository {
	types := typesOf(s.typ)
	types.Events = append(types.Events, es.Type{Body: stepped{}})
	return another(s, types)
}

func TestEVO01_UnknownEventTypeFailsTheLoadAndIsNamed(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		id := s.typ.ID("c-1")
		grow(t, s.repository(), id, 4) // with a snapshot at 3
		newer := withSteps(s)
		newer.Strategy = snapshot.Off()
		require.Equal(t, 5, handle(t, newer, es.NewCommand(id, add{1})).Version)

		r := s.repository()
		r.Strategy = snapshot.EveryCommit()
		got, err := r.Load(t.Context(), id)
		require.ErrorIs(t, err, es.ErrUnknownType)
		require.ErrorContains(t, err, `"stepped" revision 0.0.1`)
		require.Zero(t, got)
		var at *es.Error
		require.ErrorAs(t, err, &at)
		require.Equal(t, id, at.Aggregate)
		require.Equal(t, 5, at.Version)
		_, err = r.Handle(t.Context(), es.NewCommand(id, add{1}))
		require.ErrorIs(t, err, es.ErrUnknownType)
		require.NotErrorIs(t, err, es.ErrRefused)
		require.Equal(t, 3, versionOf(t, s.snapshots, id), "nothing half-built is kept")
		got, err = r.LoadVersion(t.Context(), id, 4)
		require.NoError(t, err)
		require.Equal(t, 4, got.State.Value)
	})
}

func TestEVO02_OldEventsAreLiftedOnLoad(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		id := s.typ.ID("c-1")
		older := withSteps(s)
		older.Snapshots = nil
		for _, n := range []int{2, 3} {
			c := es.NewCommand(id, add{n})
			c.AllowCreate = true
			handle(t, older, c)
		}
		types := typesOf(s.typ)
		types.Upcasters = []es.Upcaster{{Event: "stepped", Up: func(e es.RawEvent) ([]es.RawEvent, error) {
			var body stepped
			if err := json.Unmarshal(e.Body, &body); err != nil {
				return nil, err
			}
			by, err := json.Marshal(added{body.Count})
			return []es.RawEvent{{Name: "added", Revision: e.Revision, BodyType: "added", Body: by}}, err
		}}}
		today := another(s, types)
		today.Decider.Decide = decide
		requireAt(t, today, id, 2, 5)
		require.Equal(t, 3, handle(t, today, es.NewCommand(id, add{-5})).Version, "it decides on what it sees")
		requireAt(t, today, id, 3, 0)
		got, err := today.LoadVersion(t.Context(), id, 1)
		require.NoError(t, err)
		require.Equal(t, []int{2}, got.State.Steps)
	})
}

func TestFoldGivesTheAggregateAsItWasAtATime(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newSite(rdb)
		r, id := s.repository(), s.typ.ID("c-1")
		r.Store = &dated{s.store}
		grow(t, r, id, 6)
		for minutes, version := range map[int]int{0: 0, 1: 1, 4: 4, 6: 6, 60: 6} {
			got, err := r.Fold(id, s.store.LoadAt(t.Context(), id, day.Add(time.Duration(minutes)*time.Minute)))
			require.NoError(t, err)
			require.Equal(t, version, got.Version)
			require.Equal(t, version, got.State.Value)
			require.Equal(t, id, got.Aggregate)
		}
	})
}

var day = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// dated appends version n as if it were minute n of the day.
type dated struct{ es.EventStore }

func (d *dated) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (es.Appended, error) {
	for i := range commits {
		commits[i].CreateTime = day.Add(time.Duration(commits[i].Version) * time.Minute)
	}
	return d.EventStore.Append(ctx, o, commits...)
}

func TestFoldTakesConsecutiveCommitsFromTheFirstOn(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 3)
	commit := func(version int) es.Commit {
		c, err := store.Find(t.Context(), id, version)
		require.NoError(t, err)
		return c
	}
	for _, versions := range [][]int{{2}, {1, 3}, {1, 1}, {1, 2, 1}} {
		got, err := r.Fold(id, func(yield func(es.Commit, error) bool) {
			for _, v := range versions {
				if !yield(commit(v), nil) {
					return
				}
			}
		})
		require.ErrorIs(t, err, es.ErrCorrupt, "%v", versions)
		require.Zero(t, got.Version)
	}
	got, err := r.Fold(id, iter.Seq2[es.Commit, error](func(func(es.Commit, error) bool) {}))
	require.NoError(t, err)
	require.Zero(t, got.Version)
}

func TestGapInTheEventsIsCorruptWithAndWithoutASnapshot(t *testing.T) {
	t.Parallel()
	s := newSite(redistest.Shared(t).Client(t))
	r, id := s.repository(), s.typ.ID("c-1")
	grow(t, r, id, 8) // with a snapshot at 6
	require.NoError(t, s.rdb.ZRemRangeByScore(t.Context(), rediskey.EventKeys(id).Stream, "7", "7").Err())
	for range 2 {
		_, err := r.Load(t.Context(), id)
		require.ErrorIs(t, err, es.ErrCorrupt)
		_, err = r.Handle(t.Context(), es.NewCommand(id, add{1}))
		require.ErrorIs(t, err, es.ErrCorrupt)
		require.NotErrorIs(t, err, es.ErrRefused)
		require.NoError(t, s.snapshots.Drop(t.Context(), id))
	}
}
