package eventstore_test

// Where the cases named STO-…, SCR-… and so on are covered, as far as they concern the event store.
//
//	estest's suites, run by driver_test.go on three kinds of servers and in both codecs:
//	                 STO-01 02 03 05 08 09 13, KEY-01 03 04 05 10, JSON-01 02 03 08 10 13
//	cases_test.go    STO-01 02 03, EVO-01
//	halfway_test.go  STO-04
//	corrupt_test.go  STO-06 07 08 13 (redacting: redact_test.go)
//	ready_test.go    STO-10 14, FAIL-07, CLU-12
//	purge_test.go    STO-11 12, KEY-05
//	scripts_test.go  SCR-01 02 03 04 05
//	replies_test.go  SCR-07 08, CONN-07
//	cluster_test.go  CLU-03 05 06 08 09 11
//	refused_test.go  FAIL-01 03 04 05 06
//	failover_test.go FAIL-02 09 10 11
//	replicas_test.go FAIL-02
//	memory_test.go   BIG-03
//	lua/             SCR-01 02, CLU-02
//	internal/        KEY-01 02 03 06 09 10 (rediskey, legacy, redisurl), CLU-10 (redisurl), KEY-08 (redisstream)
//
// For a later part:
//
//	STO-11           a bound: there is none, request ids are unique for ever; documentation
//	SCR-03           servers from 8 on, which forget scripts: these tests run on whatever server there is
//	CLU-01 04, CONN-01 to 06 and 08 to 15: the buses; the store has no blocking read
//	FAIL-02 GRP-09   caches and snapshots ahead of a lost tail: the repository
//	FAIL-05 11       health: service
//	BIG-06           a million aggregates: a benchmark of Scan
//	EVO-02 to 12, LOST-09: repository, relay, projections

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/wire"
)

// The suite's rounds are few; these go through clients of their own, as processes would.
func TestSTO01_OneWinnerForEachVersionAmongClientsOfTheirOwn(t *testing.T) {
	t.Parallel()
	const clients, writers, rounds = 4, 5, 50
	typ := newType()
	stores := make([]*eventstore.Store, clients)
	for i := range stores {
		stores[i] = open(redistest.Shared(t).Client(t), typ)
	}
	id := typ.ID("a-1")
	for version := 1; version <= rounds; version++ {
		var won atomic.Int32
		errs := make([]error, clients*writers)
		together(clients*writers, func(i int) {
			if errs[i] = appendOne(t, stores[i%clients], commitOf(id, version)); errs[i] == nil {
				won.Add(1)
			}
		})
		require.EqualValues(t, 1, won.Load(), "version %d", version)
		for _, err := range errs {
			require.True(t, err == nil || errors.Is(err, es.ErrVersionConflict), "%v", err)
		}
	}
	require.Len(t, collect(t, stores[0].Load(t.Context(), id, es.Versions{})), rounds)
}

// lossy is a store behind proxies, and the one that the appends to an aggregate pass.
type lossy struct {
	store *eventstore.Store
	proxy *redistest.Proxy
}

func newLossy(t *testing.T, id es.AggregateID, retries int) lossy {
	s := redistest.Shared(t)
	p := redistest.NewProxy(t, s.Addr)
	o := s.Options()
	o.Addr, o.MaxRetries, o.ReadTimeout = p.Addr, retries, 500*time.Millisecond
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return lossy{open(rdb, id.Type), p}
}

func newLossyCluster(t *testing.T, id es.AggregateID) lossy {
	c := redistest.SharedCluster(t)
	rdb, proxies := redistest.ProxyCluster(t, c)
	owner := c.Owner(t, c.Slot(t, rediskey.EventKeys(id).Stream))
	return lossy{open(rdb, id.Type), proxies[slices.Index(c.Nodes, owner)]}
}

var losses = map[string]func(p *redistest.Proxy, command string){
	"EOF":     (*redistest.Proxy).DropReply,
	"timeout": (*redistest.Proxy).SwallowReply,
}

// lose makes the next append be carried out and not answered.
func (l lossy) lose(t *testing.T, how string) {
	t.Helper()
	require.Zero(t, l.proxy.Pending())
	losses[how](l.proxy, "EVALSHA "+lua.AppendCommits.Hash())
}

func TestSTO02_LostReplyIsToldAndTheSameCallSucceeds(t *testing.T) {
	t.Parallel()
	for how := range losses {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			id := newType().ID("a-1")
			l := newLossy(t, id, -1)
			add(t, l.store, commitOf(id.Type.ID("another"), 1)) // the server knows the script now
			c := commitOf(id, 1)
			l.lose(t, how)
			done, err := l.store.Append(t.Context(), es.AppendOptions{Note: true}, c)
			require.ErrorIs(t, err, es.ErrUncertain)
			require.Equal(t, es.Appended{}, done)
			var timeout net.Error
			require.True(t, errors.Is(err, io.EOF) || errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
			require.Zero(t, l.proxy.Pending())

			done, err = l.store.Append(t.Context(), es.AppendOptions{Note: true}, c)
			require.NoError(t, err, "the same call again")
			require.Equal(t, es.Appended{Same: true, Publish: true}, done, "the note is this caller's")
			requireStored(t, l.store, id, c)
		})
	}
}

func TestSTO02_LostReplyIsHarmlessToAClientThatRepeats(t *testing.T) {
	t.Parallel()
	for kind, start := range map[string]func(t *testing.T, id es.AggregateID) lossy{
		"standalone": func(t *testing.T, id es.AggregateID) lossy { return newLossy(t, id, 0) },
		"cluster":    newLossyCluster,
	} {
		for how := range losses {
			t.Run(kind+", "+how, func(t *testing.T) {
				t.Parallel()
				id := newType().ID("a-1")
				l := start(t, id)
				for i := range 30 { // every node knows the script now
					add(t, l.store, commitOf(id.Type.ID(fmt.Sprint("another ", i)), 1))
				}
				commits := commitsOf(id, 1, 4)
				for _, batch := range [][]es.Commit{commits[:1], commits[1:]} {
					l.lose(t, how)
					done, err := l.store.Append(t.Context(), es.AppendOptions{}, batch...)
					require.NoError(t, err)
					require.True(t, done.Same)
					require.Zero(t, l.proxy.Pending())
				}
				requireStored(t, l.store, id, commits...)
			})
		}
	}
}

func TestSTO03_ARequestIsKnownAfterARestart(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "appendonly yes", "appendfsync always")
	rdb := server.Client(t)
	typ := newType()
	commits := commitsOf(typ.ID("a-1"), 1, 3)
	add(t, open(rdb, typ), commits...)
	server.Restart(t)
	s := open(rdb, typ)
	again := commitOf(typ.ID("a-1"), 4)
	again.RequestID = commits[0].RequestID
	require.ErrorIs(t, appendOne(t, s, again), es.ErrDuplicateRequest)
	found, err := s.FindRequest(t.Context(), again.Aggregate, again.RequestID)
	require.NoError(t, err)
	require.Equal(t, 1, found.Version, "the version that the request produced")
}

func TestEVO01_AnEventThatNobodyKnowsKeepsItsNameAndBytes(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	c := commitOf(typ.ID("a-1"), 1)
	c.Events[0] = es.Event{ID: "e-1", Name: "removed", Revision: "7", BodyType: "old.Removed", Body: es.Raw(`{"n":9007199254740993,"x":[]}`)}
	c.Derive()
	s := eventstore.New(rdb, wire.JSON(es.Types{Aggregate: typ}))
	add(t, s, c)
	got := collect(t, s.Load(t.Context(), c.Aggregate, es.Versions{}))
	require.Len(t, got, 1)
	require.Equal(t, c.Events, got[0].Events, "the reader of the state says that it is unknown, and where")
}
