package eventstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

// noted appends with a note and a state event.
func noted(c es.Commit) es.AppendOptions {
	return es.AppendOptions{Note: true, State: &es.StateEvent{Commit: c, State: map[string]int{"version": c.Version}}}
}

// messages are those of a topic.
func messages(t *testing.T, rdb redis.Cmdable, topic string) (got []string) {
	t.Helper()
	entries, err := rdb.XRange(t.Context(), topic, "-", "+").Result()
	require.NoError(t, err)
	for _, e := range entries {
		require.Len(t, e.Values, 1)
		text, _ := e.Values["msg"].(string)
		got = append(got, text)
	}
	return got
}

func TestAppendPublishesInTheSameStep(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		_, cluster := rdb.(*redis.ClusterClient)
		typ := newType()
		codec := wire.JSON(estest.TypesOf(typ))
		s := open(rdb, typ)
		s.Publish = true
		id := typ.ID("a-1")
		var events, states []string
		for version := 1; version <= 3; version++ {
			c := commitOf(id, version)
			o := noted(c)
			got, err := s.Append(t.Context(), o, c)
			require.NoError(t, err)
			if cluster {
				require.Equal(t, es.Appended{Publish: version == 1}, got, "as without it")
				continue
			}
			require.Equal(t, es.Appended{Published: true}, got)
			event, err := codec.EncodeCommit(&c)
			require.NoError(t, err)
			state, err := codec.EncodeStateEvent(o.State)
			require.NoError(t, err)
			events, states = append(events, string(event)), append(states, string(state))
			again, err := s.Append(t.Context(), o, c)
			require.NoError(t, err)
			require.Equal(t, es.Appended{Same: true}, again, "a lost reply publishes nothing twice")
		}
		require.Equal(t, events, messages(t, rdb, rediskey.Event(typ)))
		require.Equal(t, states, messages(t, rdb, rediskey.State(typ)))
		require.Equal(t, !cluster, len(collect(t, s.Unpublished(t.Context(), typ))) == 0)
	})
}

func TestAppendBehindANotePublishesNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	plain, s := open(rdb, typ), open(rdb, typ)
	s.Publish = true
	id := typ.ID("a-1")
	c := commitOf(id, 1)
	got, err := plain.Append(t.Context(), es.AppendOptions{Note: true}, c) // as a process without Publish does
	require.NoError(t, err)
	require.True(t, got.Publish)
	c = commitOf(id, 2)
	got, err = s.Append(t.Context(), noted(c), c)
	require.NoError(t, err)
	require.Equal(t, es.Appended{}, got)
	require.Empty(t, messages(t, rdb, rediskey.Event(typ)))
	next, err := s.Published(t.Context(), id, 1, 2)
	require.NoError(t, err)
	require.Zero(t, next)
	c = commitOf(id, 3)
	got, err = s.Append(t.Context(), noted(c), c)
	require.NoError(t, err)
	require.True(t, got.Published)
	several := commitsOf(id, 4, 2)
	got, err = s.Append(t.Context(), es.AppendOptions{Note: true}, several...)
	require.NoError(t, err)
	require.Equal(t, es.Appended{Publish: true}, got, "several are left to their publisher")
}

func TestWhatCannotBePublishedInOneStepIsNoted(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for what, topic := range map[string]func(es.AggregateType) string{"event": rediskey.Event, "state": rediskey.State} {
		typ := newType()
		s := open(rdb, typ)
		s.Publish = true
		require.NoError(t, rdb.Set(t.Context(), topic(typ), "no stream", 0).Err())
		id := typ.ID("a-1")
		c := commitOf(id, 1)
		got, err := s.Append(t.Context(), noted(c), c)
		require.NoError(t, err, what)
		require.Equal(t, es.Appended{Publish: true}, got, what)
		require.Equal(t, []es.Note{{Aggregate: id, Version: 1}}, collect(t, s.Unpublished(t.Context(), typ)), what)
		requireStored(t, s, id, c)
	}
	typ := newType()
	s := open(rdb, typ)
	s.Publish = true
	c := commitOf(typ.ID("a-1"), 1)
	require.NoError(t, rdb.Set(t.Context(), rediskey.EventKeys(c.Aggregate).Outbox, "no notes", 0).Err())
	_, err := s.Append(t.Context(), noted(c), c)
	require.ErrorIs(t, err, es.ErrCorrupt)
	require.Empty(t, messages(t, rdb, rediskey.Event(typ)), "what is not stored is not published")
	requireStored(t, s, c.Aggregate)
}

// A client that hides that it is one of a cluster learns it from the answer.
func TestOneStepIsNoneWhereTopicsAreInOtherSlots(t *testing.T) {
	t.Parallel()
	typ := newType()
	s := open(struct{ redis.UniversalClient }{redistest.SharedCluster(t).Client(t)}, typ)
	s.Publish = true
	for _, id := range []string{"a-1", "a-2"} {
		c := commitOf(typ.ID(id), 1)
		got, err := s.Append(t.Context(), noted(c), c)
		require.NoError(t, err)
		require.Equal(t, es.Appended{Publish: true}, got)
	}
}
