package eventstore_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	kernel "github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
)

// withReplicas is a store that waits for one replica.
func withReplicas(rdb redis.UniversalClient, timeout time.Duration, typ es.AggregateType) *eventstore.Store {
	s := open(rdb, typ)
	s.Replicas, s.ReplicaTimeout = 1, timeout
	return s
}

// replicaOf is the one that is not the master.
func replicaOf(t *testing.T, s *redistest.Sentinel) *redistest.Server {
	t.Helper()
	if master := s.Master(t); s.Nodes[0] != master {
		return s.Nodes[0]
	}
	return s.Nodes[1]
}

func requireUnreplicated(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, es.ErrUnreplicated)
	require.ErrorIs(t, err, es.ErrUncertain)
	var at *es.Error
	require.ErrorAs(t, err, &at)
}

func TestFAIL02_WhatAReplicaConfirmedIsThere(t *testing.T) {
	t.Parallel()
	trio := redistest.NewSentinel(t)
	typ := newType()
	s := withReplicas(trio.Client(t), 4*time.Second, typ)
	replica := replicaOf(t, trio).Client(t)
	id := typ.ID("a-1")
	for version := range 50 {
		add(t, s, commitOf(id, version+1))
		require.EqualValues(t, version+1, replica.ZCard(t.Context(), rediskey.Stream(id)).Val())
	}
}

func TestFAIL02_WithoutItsReplicaACommitIsUnconfirmedAndStored(t *testing.T) {
	t.Parallel()
	trio := redistest.NewSentinel(t)
	typ := newType()
	rdb := trio.Client(t)
	s, id := withReplicas(rdb, 100*time.Millisecond, typ), typ.ID("a-1")
	require.NoError(t, s.Ready(t.Context(), typ))
	replica := replicaOf(t, trio)
	replica.Pause(t)

	c := commitOf(id, 1)
	note := es.AppendOptions{Note: true}
	for range 2 { // the second, of a connection that wrote nothing, finds no more replicas
		appended, err := s.Append(t.Context(), note, c)
		requireUnreplicated(t, err)
		require.Zero(t, appended)
		s = withReplicas(trio.Client(t), 100*time.Millisecond, typ)
	}
	requireStored(t, s, id, c)
	_, err := s.FindRequest(t.Context(), id, c.RequestID)
	requireUnreplicated(t, err)
	require.ErrorIs(t, appendOne(t, s, commitOf(id, 1)), es.ErrVersionConflict, "who wrote nothing waits for nobody")

	replica.Resume(t)
	s = withReplicas(rdb, 4*time.Second, typ)
	appended, err := s.Append(t.Context(), note, c)
	require.NoError(t, err)
	require.Equal(t, es.Appended{Publish: true, Same: true}, appended)
	found, err := s.FindRequest(t.Context(), id, c.RequestID)
	require.NoError(t, err)
	require.Equal(t, c.ID, found.ID)
	require.EqualValues(t, -1, rdb.TTL(t.Context(), rediskey.Stream(id)).Val(), "no key has an end")
}

// follow makes replica one of master, and waits until an append is confirmed by it.
func follow(t *testing.T, replica, master *redistest.Server, s *eventstore.Store, typ es.AggregateType) {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr, ":")
	require.NoError(t, replica.Client(t).ReplicaOf(t.Context(), host, port).Err())
	c := commitOf(typ.ID("first"), 1)
	require.Eventually(t, func() bool { return appendOne(t, s, c) == nil }, eventually, tick)
}

func TestFAIL02_AnUnconfirmedCommitThatAFailoverLostIsStoredOnceByARetry(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Standalone(t), redistest.Standalone(t)
	typ := newType()
	id := typ.ID("a-1")
	s := withReplicas(master.Client(t), 4*time.Second, typ)
	follow(t, replica, master, s, typ)
	commits := commitsOf(id, 1, 2)
	add(t, s, commits[0])
	promoted := replica.Client(t)
	require.NoError(t, promoted.ReplicaOf(t.Context(), "NO", "ONE").Err())
	s.ReplicaTimeout = 50 * time.Millisecond
	requireUnreplicated(t, appendOne(t, s, commits[1]))

	after := open(promoted, typ)
	requireStored(t, after, id, commits[0])
	for again := range 2 {
		appended, err := after.Append(t.Context(), es.AppendOptions{}, commits[1])
		require.NoError(t, err)
		require.Equal(t, es.Appended{Same: again > 0}, appended)
	}
	requireStored(t, after, id, commits...)
}

func TestFAIL02_ACommandIsNoSuccessBeforeItsReplicaHasIt(t *testing.T) {
	t.Parallel()
	trio := redistest.NewSentinel(t)
	typ := newType()
	rdb := trio.Client(t)
	orders := func(timeout time.Duration) *kernel.Repository[int] {
		return &kernel.Repository[int]{Store: withReplicas(rdb, timeout, typ), Decider: kernel.Decider[int]{
			Type:   typ,
			Decide: func(int, es.Command) (es.Events, error) { return es.Events{estest.Created{Data: "x"}}, nil },
			Evolve: func(n int, _ es.Event) int { return n + 1 },
		}}
	}
	cmd := es.NewCreateCommand(typ.ID("a-1"), estest.Change{})
	cmd.RequestID = "r-1"
	replica := replicaOf(t, trio)
	replica.Pause(t)
	for range 2 {
		_, err := orders(50*time.Millisecond).Handle(t.Context(), cmd)
		requireUnreplicated(t, err)
	}
	replica.Resume(t)
	result, err := orders(4*time.Second).Handle(t.Context(), cmd)
	require.NoError(t, err)
	require.Equal(t, es.Result{Aggregate: cmd.Aggregate, Version: 1, Duplicate: true}, result)
}

func TestFAIL02_EachMasterOfAClusterWaitsForItsOwnReplica(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 1)
	typ := newType()
	s := withReplicas(c.Client(t), 300*time.Millisecond, typ)
	s.Patience = eventually
	require.NoError(t, s.Ready(t.Context(), typ))
	owner := func(id es.AggregateID) *redistest.Server { return c.Owner(t, c.Slot(t, rediskey.Stream(id))) }
	var ids []es.AggregateID
	owners := map[*redistest.Server]int{}
	for i := range 12 {
		id := typ.ID(fmt.Sprint("a-", i))
		ids = append(ids, id)
		owners[owner(id)]++
		first := commitOf(id, 1)
		require.Eventually(t, func() bool { return appendOne(t, s, first) == nil }, eventually, tick)
	}
	require.Len(t, owners, 3)

	c.Nodes[3].Pause(t) // the replica of the first
	for _, id := range ids {
		next := commitOf(id, 2)
		if owner(id) == c.Nodes[0] {
			requireUnreplicated(t, appendOne(t, s, next))
			continue
		}
		require.Eventually(t, func() bool { return appendOne(t, s, next) == nil }, eventually, tick)
	}
	c.Nodes[3].Resume(t)
	for _, id := range ids {
		next := commitOf(id, 3)
		require.Eventually(t, func() bool { return appendOne(t, s, next) == nil }, eventually, tick)
	}

	slot := c.Slot(t, rediskey.Stream(ids[0])) // the client learns where it went
	from := c.Owner(t, slot)
	c.MigrateSlot(t, slot, from, otherNode(c, from))
	for _, node := range c.Nodes[:3] {
		require.NoError(t, node.Client(t).ScriptFlush(t.Context()).Err())
	}
	for _, id := range ids {
		next := commitOf(id, 4)
		require.Eventually(t, func() bool { return appendOne(t, s, next) == nil }, eventually, tick)
		require.Len(t, collect(t, s.Load(t.Context(), id, es.Versions{})), 4)
	}
}

// trips counts the round trips of a client.
type trips struct{ singles, pipelines atomic.Int64 }

func (h *trips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.singles.Add(1)
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.pipelines.Add(1)
		return next(ctx, cmds)
	}
}

func TestFAIL02_WaitingCostsNoRoundTripAndNothingWhereItIsNotAskedFor(t *testing.T) {
	t.Parallel()
	server, replica := redistest.Standalone(t), redistest.Standalone(t)
	rdb := server.Client(t)
	typ := newType()
	plain := open(rdb, typ)
	add(t, plain, commitsOf(typ.ID("a-1"), 1, 3)...)
	require.NotContains(t, rdb.Info(t.Context(), "commandstats").Val(), "cmdstat_wait:")

	s := withReplicas(rdb, 4*time.Second, typ)
	follow(t, replica, server, s, typ)
	var h trips
	rdb.AddHook(&h)
	add(t, s, commitsOf(typ.ID("a-3"), 1, 5)...)
	require.EqualValues(t, 5, h.pipelines.Load())
	require.Zero(t, h.singles.Load())
}

func TestFAIL02_AClientThatCannotWaitIsRefused(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		pipelining, err := rdb.AutoPipeline()
		require.NoError(t, err)
		for _, s := range []*eventstore.Store{withReplicas(pipelining, 0, typ), withReplicas(rdb, time.Hour, typ)} {
			require.ErrorIs(t, s.Ready(t.Context(), typ), es.ErrInvalid)
			require.ErrorIs(t, appendOne(t, s, commitOf(typ.ID("a-1"), 1)), es.ErrInvalid)
		}
		requireStored(t, open(rdb, typ), typ.ID("a-1"))
	})
}
