package aggregate_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

func withRequest(c es.Command, request string) es.Command {
	c.RequestID = request
	return c
}

func TestRequestIDOfAnotherCommandIsRefusedAndNamed(t *testing.T) {
	t.Parallel()
	r, _ := newRepository()
	r.Digest = wire.JSON(typesOf(r.Decider.Type)).CommandDigest
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 1)
	first := withRequest(es.NewCommand(id, add{3}), "r-1")
	require.Equal(t, es.Result{Aggregate: id, Version: 2}, handle(t, r, first))
	grow(t, r, id, 1)
	require.Equal(t, es.Result{Aggregate: id, Version: 2, Duplicate: true}, handle(t, r, first), "the same body")
	for what, other := range map[string]es.Command{
		"another body": es.NewCommand(id, add{4}), "another name": es.NewCommand(id, give{"3"}), "one that is refused": es.NewCommand(id, add{-99}),
	} {
		_, err := r.Handle(t.Context(), withRequest(other, "r-1"))
		require.ErrorIs(t, err, es.ErrRequestReused, what)
		require.ErrorIs(t, err, es.ErrRefused, what)
		require.ErrorContains(t, err, "version 2 request r-1", what)
	}
	requireAt(t, r, id, 3, 5)
}

func TestRequestWithoutDigestIsTakenForTheSame(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	id := r.Decider.Type.ID("c-1")
	grow(t, r, id, 1)
	handle(t, r, withRequest(es.NewCommand(id, add{3}), "r-1"))
	stored, err := store.Find(t.Context(), id, 2)
	require.NoError(t, err)
	_, has := stored.Header.Lookup(es.HeaderCommandDigest)
	require.False(t, has, "as a Kotlin node's")
	r.Digest = wire.JSON(typesOf(r.Decider.Type)).CommandDigest
	require.Equal(t, es.Result{Aggregate: id, Version: 2, Duplicate: true}, handle(t, r, withRequest(es.NewCommand(id, add{4}), "r-1")))
}

func TestDigestOfABusIsThatOfTheCodec(t *testing.T) {
	t.Parallel()
	var rdb redis.UniversalClient = redistest.Shared(t).Client(t)
	s := newSite(rdb)
	codec := wire.JSON(typesOf(s.typ))
	bus := commandbus.New(rdb, codec)
	r := s.repository()
	r.Digest = codec.CommandDigest
	id := s.typ.ID("c-1")
	sent := withRequest(es.NewCreateCommand(id, add{3}), "r-1")
	handle(t, r, sent)
	require.NoError(t, bus.Send(t.Context(), sent))
	require.NoError(t, bus.Send(t.Context(), withRequest(es.NewCreateCommand(id, add{4}), "r-1")))
	got := make(chan error, 2)
	subscribe(t, bus, s.typ, func(c es.Command) {
		result, err := r.Handle(t.Context(), c)
		if err == nil && !result.Duplicate {
			err = es.ErrNotFound
		}
		got <- err
	})
	require.NoError(t, <-got)
	require.ErrorIs(t, <-got, es.ErrRequestReused)
	stored, err := s.store.Find(t.Context(), id, 1)
	require.NoError(t, err)
	require.Equal(t, es.HeaderCommandDigest, stored.Header[len(stored.Header)-1].Key, "behind all of Wow's")
}
