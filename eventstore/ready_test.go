package eventstore_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/redistest"
)

// requireShut says that the store neither gets ready for the type nor appends to it.
func requireShut(t *testing.T, newStore func() *eventstore.Store, typ es.AggregateType, kind error) {
	t.Helper()
	require.ErrorIs(t, newStore().Ready(within(t, 10*time.Second), typ), kind)
	s := newStore()
	for range 2 { // a refusal is no readiness
		require.ErrorIs(t, appendOne(t, s, commitOf(typ.ID("a-1"), 1)), kind)
	}
	require.Empty(t, collect(t, s.Load(t.Context(), typ.ID("a-1"), es.Versions{})))
}

// An old request id is looked for in the new place only: so the old place must be empty.
func TestSTO10_CLU12_AnOlderLayoutIsFoundWhereverItsKeyLies(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(t testing.TB) redis.UniversalClient{
		"standalone": func(t testing.TB) redis.UniversalClient { return redistest.Shared(t).Client(t) },
		"cluster":    func(t testing.TB) redis.UniversalClient { return redistest.SharedCluster(t).Client(t) },
		"sentinel":   func(t testing.TB) redis.UniversalClient { return redistest.SharedSentinel(t).Client(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := client(t)
			typ := newType()
			typ.Alias = "odd [ab]*?^\\ alias" // would mean something to a pattern
			for _, key := range legacy.Sentinels(typ) {
				require.NoError(t, rdb.Set(t.Context(), key, "of any type", 0).Err())
				err := open(rdb, typ).Ready(t.Context(), typ)
				require.ErrorIs(t, err, es.ErrLegacyLayout, key)
				require.ErrorContains(t, err, fmt.Sprintf("%q", key))
				if key == legacy.Sentinels(typ)[0] {
					requireShut(t, func() *eventstore.Store { return open(rdb, typ) }, typ, es.ErrLegacyLayout)
				}
				require.NoError(t, rdb.Del(t.Context(), key).Err())
			}
			require.NoError(t, open(rdb, typ).Ready(t.Context(), typ))
		})
	}
}

func TestSTO10_OneTypesOlderLayoutDoesNotStopAnother(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	old, young := newType(), newType()
	require.NoError(t, rdb.Set(t.Context(), legacy.Sentinels(old)[0], "x", 0).Err())
	s := open(rdb, old, young)
	require.ErrorIs(t, s.Ready(t.Context(), young, old), es.ErrLegacyLayout)
	add(t, s, commitOf(young.ID("a-1"), 1))
	require.ErrorIs(t, appendOne(t, s, commitOf(old.ID("a-1"), 1)), es.ErrLegacyLayout)
}

func TestCLU12_TheGuardFailsClosedWhereAMasterIsDown(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	typ := newType()
	rdb := c.Client(t)
	require.NoError(t, open(rdb, typ).Ready(t.Context(), typ))
	c.Nodes[2].Kill(t)
	s := open(rdb, typ)
	s.Patience = 100 * time.Millisecond
	require.Error(t, s.Ready(within(t, 3*time.Second), typ))
	for i := range 5 { // some of them belong to masters that are up
		require.Error(t, appendOne(t, s, commitOf(typ.ID(fmt.Sprint(i)), 1)))
	}
	c.Nodes[2].Start(t)
	// After many refused connections the client itself takes a second to dial again.
	reached := func(ctx context.Context, master *redis.Client) error { return master.Ping(ctx).Err() }
	require.Eventually(t, func() bool { return rdb.ForEachMaster(t.Context(), reached) == nil }, eventually, tick)
	require.NoError(t, s.Ready(within(t, eventually), typ), "it waits for the cluster")
	add(t, s, commitOf(typ.ID("a-1"), 1))
}

func TestCLU12_TheGuardFailsClosedWhereItMayNotLook(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	admin := server.Client(t)
	rdb := user(t, server, admin)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "service", "-exists").Err())
	typ := newType()
	s := open(rdb, typ)
	for range 2 {
		require.ErrorContains(t, s.Ready(t.Context(), typ), "NOPERM")
		require.ErrorContains(t, appendOne(t, s, commitOf(typ.ID("a-1"), 1)), "NOPERM")
	}
	require.Empty(t, traces(t, admin, typ.ID("a-1")))
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "service", "+exists").Err())
	add(t, s, commitOf(typ.ID("a-1"), 1))
}

func TestTheGuardLooksOncePerType(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	p := redistest.NewProxy(t, server.Addr)
	o := server.Options()
	o.Addr = p.Addr
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	one, two := newType(), newType()
	s := open(rdb, one, two)
	require.NoError(t, s.Ready(t.Context(), one))
	looks := p.Count("EXISTS")
	require.Len(t, legacy.Sentinels(one), looks)
	add(t, s, commitsOf(one.ID("a-1"), 1, 5)...)
	require.Equal(t, looks, p.Count("EXISTS"))
	add(t, s, commitsOf(two.ID("a-1"), 1, 5)...)
	require.Equal(t, 2*looks, p.Count("EXISTS"))
	require.Equal(t, 1, p.Count("INFO"))
}

func TestSTO14_AClientThatReadsFromReplicasIsRefused(t *testing.T) {
	t.Parallel()
	cluster, sentinel := redistest.SharedCluster(t), redistest.SharedSentinel(t)
	for name, change := range map[string]func(c *redis.ClusterOptions, f *redis.FailoverOptions){
		"read-only": func(c *redis.ClusterOptions, f *redis.FailoverOptions) { c.ReadOnly, f.RouteByLatency = true, true },
		"by latency": func(c *redis.ClusterOptions, f *redis.FailoverOptions) {
			c.RouteByLatency, f.RouteByLatency = true, true
		},
		"randomly": func(c *redis.ClusterOptions, f *redis.FailoverOptions) { c.RouteRandomly, f.RouteRandomly = true, true },
	} {
		co, fo := cluster.Options(), sentinel.Options()
		change(co, fo)
		for kind, rdb := range map[string]redis.UniversalClient{"cluster": redis.NewClusterClient(co), "sentinel": redis.NewFailoverClusterClient(fo)} {
			t.Cleanup(func() { _ = rdb.Close() })
			typ := newType()
			s := open(rdb, typ)
			require.ErrorIs(t, s.Ready(t.Context(), typ), es.ErrInvalid, "%s, %s", kind, name)
			require.ErrorIs(t, appendOne(t, s, commitOf(typ.ID("a-1"), 1)), es.ErrInvalid, "%s, %s", kind, name)
		}
	}
}

// What was appended is loaded, though the replica is far behind.
func TestSTO14_LoadsComeFromTheMaster(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	master := s.Master(t)
	typ := newType()
	store := open(s.Client(t), typ)
	require.NoError(t, store.Ready(t.Context(), typ))
	for _, node := range s.Nodes {
		if node != master {
			node.Pause(t) // gets nothing from now on
			t.Cleanup(func() { node.Resume(t) })
		}
	}
	commits := commitsOf(typ.ID("a-1"), 1, 20)
	for i, c := range commits {
		add(t, store, c)
		requireStored(t, store, c.Aggregate, commits[:i+1]...)
	}
}

func TestFAIL07_AServerThatMayEvictEventsIsRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	typ := newType()
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random"} {
		require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
		requireShut(t, func() *eventstore.Store { return open(rdb, typ) }, typ, es.ErrEviction)
	}
	for _, policy := range []string{"volatile-lru", "volatile-ttl", "noeviction"} { // no key of ours has an expiry
		require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
		require.NoError(t, open(rdb, typ).Ready(t.Context(), typ), policy)
	}
}

func TestFAIL07_EveryMasterIsAsked(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	typ := newType()
	for _, node := range c.Nodes {
		require.NoError(t, node.Client(t).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
		require.ErrorIs(t, open(c.Client(t), typ).Ready(t.Context(), typ), es.ErrEviction)
		require.NoError(t, node.Client(t).ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	}
	require.NoError(t, open(c.Client(t), typ).Ready(t.Context(), typ))
}

func TestFAIL07_AServerThatDoesNotSayIsReported(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	admin := server.Client(t)
	rdb := user(t, server, admin)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "service", "-info").Err())
	typ := newType()
	s := open(rdb, typ)
	var log bytes.Buffer
	s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	require.NoError(t, s.Ready(t.Context(), typ))
	require.Contains(t, log.String(), "noeviction")
	add(t, s, commitOf(typ.ID("a-1"), 1))
}

func TestReadyNamesWhatCannotBe(t *testing.T) {
	t.Parallel()
	s := open(redistest.Shared(t).Client(t), newType())
	require.NoError(t, s.Ready(t.Context()))
	require.ErrorIs(t, s.Ready(t.Context(), es.AggregateType{Context: "{x}", Name: "n"}), es.ErrInvalid)
	closed, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Ready(closed, newType()), context.Canceled)
}
