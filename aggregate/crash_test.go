package aggregate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/statebus"
	"github.com/headwater-go/headwater/wire"
)

const crashVariable = "AGGREGATE_TEST_CRASH"

// fate is what a process is started for.
type fate struct {
	Addrs   []string
	Master  string
	Type    es.AggregateType
	Step    string
	OneStep bool
}

func (f fate) client() redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: f.Addrs, MasterName: f.Master})
}

// dying kills its process, for which nothing is deferred, the second time that a step is done.
type dying struct {
	step  string
	count atomic.Int64
}

func (d *dying) after(step string) {
	if d != nil && d.step == step && d.count.Add(1) == 2 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// Each part of a mortal does what it is made for, and then perhaps dies.
type (
	mortalStore struct {
		*eventstore.Store
		*dying
	}
	mortalEvents struct {
		*eventbus.Bus
		*dying
	}
	mortalStates struct {
		*statebus.Bus[counter]
		*dying
	}
	mortalSnapshots struct {
		*snapshot.Store[counter]
		*dying
	}
	mortalNotifier struct {
		*noticeboard
		*dying
	}
)

func (m mortalStore) Append(ctx context.Context, o es.AppendOptions, commits ...es.Commit) (es.Appended, error) {
	m.after("load")
	a, err := m.Store.Append(ctx, o, commits...)
	m.after("append")
	return a, err
}

func (m mortalStore) PublishedAll(ctx context.Context, moves ...es.Move) ([]int, error) {
	next, err := m.Store.PublishedAll(ctx, moves...)
	for range moves {
		m.after("move note")
	}
	return next, err
}

func (m mortalEvents) Publish(ctx context.Context, commits ...es.Commit) error {
	err := m.Bus.Publish(ctx, commits...)
	m.after("event")
	return err
}

func (m mortalStates) Publish(ctx context.Context, e es.StateEvent) error {
	err := m.Bus.Publish(ctx, e)
	m.after("state")
	return err
}

func (m mortalSnapshots) Save(ctx context.Context, s es.Snapshot[counter]) error {
	err := m.Store.Save(ctx, s)
	m.after("snapshot")
	return err
}

func (m mortalNotifier) Notify(ctx context.Context, h es.Header, s es.Signal) {
	m.noticeboard.Notify(ctx, h, s)
	m.after("notify")
}

// member is a process of a service: it handles commands and relays.
func member(ctx context.Context, rdb redis.UniversalClient, f fate, d *dying, board *noticeboard) (*repository, func()) {
	codec := wire.JSON(typesOf(f.Type))
	store := eventstore.New(rdb, codec)
	store.Publish = f.OneStep
	mortal := mortalStore{store, d}
	r := &repository{
		Decider: deciderOf(f.Type), Store: mortal, Outbox: mortal, Events: mortalEvents{eventbus.New(rdb, codec), d}, States: mortalStates{statebus.New[counter](rdb, codec), d},
		Snapshots: mortalSnapshots{snapshot.New[counter](rdb, codec), d}, Strategy: snapshot.EveryVersions(2), Notifier: mortalNotifier{board, d},
	}
	sub := es.Subscription{Group: crashGroup, Aggregates: []es.AggregateType{f.Type}, Lease: 2 * time.Second, Sweep: 200 * time.Millisecond}
	relay := &aggregate.Relay{Of: []aggregate.Publishable{r}, Every: 200 * time.Millisecond, Lease: recovery.NewLease(rdb, f.Type.String())}
	var wg sync.WaitGroup
	wg.Go(func() { _ = relay.Run(ctx) })
	wg.Go(func() {
		_ = commandbus.New(rdb, codec).Subscribe(ctx, sub, func(ctx context.Context, c es.Command) (es.Result, error) {
			d.after("receive")
			result, err := r.Handle(ctx, c)
			d.after("handle")
			return result, err
		})
	})
	return r, wg.Wait
}

const crashGroup = "at.CommandDispatcher"

// TestMortal is no test: it is what the processes that the next test starts run.
func TestMortal(t *testing.T) {
	spec := os.Getenv(crashVariable)
	if spec == "" {
		t.Skip("it is run by TestCrashAtEveryStep")
	}
	var f fate
	require.NoError(t, json.Unmarshal([]byte(spec), &f))
	rdb := f.client()
	d := &dying{step: f.Step}
	_, wait := member(t.Context(), rdb, f, d, &noticeboard{})
	if f.Step == "ack" { // once all is handled and acknowledged
		require.Eventually(t, func() bool { return acknowledged(t.Context(), rdb, f.Type) }, eventually, tick)
		d.after("ack")
		d.after("ack")
	}
	wait()
}

// acknowledged says that the group has read everything and has nothing pending.
func acknowledged(ctx context.Context, rdb redis.UniversalClient, typ es.AggregateType) bool {
	newest, err := rdb.XRevRangeN(ctx, rediskey.Command(typ), "+", "-", 1).Result()
	groups, failure := rdb.XInfoGroups(ctx, rediskey.Command(typ)).Result()
	return err == nil && failure == nil && len(newest) == 1 && len(groups) == 1 && groups[0].Pending == 0 && groups[0].LastDeliveredID == newest[0].ID
}

// A process is killed after each single step of handling a command; another one finishes.
func TestCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	steps := []string{"receive", "load", "append", "event", "state", "move note", "notify", "snapshot", "handle", "ack"}
	inOneStep := []string{"receive", "load", "append", "notify", "snapshot", "handle", "ack"}
	places := map[string]func(t *testing.T, run func(fate, func(), []string)){
		"standalone": func(t *testing.T, run func(fate, func(), []string)) {
			run(fate{Addrs: []string{redistest.Shared(t).Addr}}, nil, steps)
		},
		"standalone in one step": func(t *testing.T, run func(fate, func(), []string)) {
			run(fate{Addrs: []string{redistest.Shared(t).Addr}, OneStep: true}, nil, inOneStep)
		},
		"cluster": func(t *testing.T, run func(fate, func(), []string)) {
			run(fate{Addrs: redistest.SharedCluster(t).Options().Addrs, OneStep: true}, nil, steps) // where one step is none
		},
		"across a failover": func(t *testing.T, run func(fate, func(), []string)) {
			s := redistest.NewSentinel(t)
			run(fate{Addrs: s.SentinelAddrs, Master: s.MasterName}, func() {
				conn := s.Client(t).Conn() // what a failover may lose is no concern of this test
				defer func() { _ = conn.Close() }()
				require.NoError(t, conn.Set(t.Context(), "before", "the failover", 0).Err())
				require.EqualValues(t, 1, conn.Wait(t.Context(), 1, 2*time.Second).Val())
				s.Failover(t)
			}, steps)
		},
	}
	for place, open := range places {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			open(t, func(f fate, between func(), steps []string) {
				crashes := []*crash{}
				for _, step := range steps {
					f.Step, f.Type = step, newType()
					crashes = append(crashes, begin(t, f))
				}
				for _, c := range crashes {
					c.die(t)
				}
				if between != nil {
					between()
				}
				for _, c := range crashes {
					c.finish(t)
				}
			})
		})
	}
}

// crash is one process that dies, and the commands it was to handle.
type crash struct {
	fate
	cmd  *exec.Cmd
	sent []es.Command
}

func begin(t *testing.T, f fate) *crash {
	rdb := f.client()
	t.Cleanup(func() { _ = rdb.Close() })
	c := &crash{fate: f}
	bus := commandbus.New(rdb, wire.JSON(typesOf(f.Type)))
	for i, name := range []string{"c-1", "c-2", "c-1", "c-2", "c-1", "c-2"} {
		command := es.NewCommand(f.Type.ID(name), add{1})
		command.ID, command.AllowCreate = fmt.Sprint("command-", i), true
		require.NoError(t, bus.Send(t.Context(), command))
		c.sent = append(c.sent, command)
	}
	spec, err := json.Marshal(f)
	require.NoError(t, err)
	c.cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMortal$")
	c.cmd.Env = append(os.Environ(), crashVariable+"="+string(spec))
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

func (c *crash) die(t *testing.T) {
	err := c.cmd.Wait()
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.Equal(t, syscall.SIGKILL, status.Signal(), "%s: it died of the step, not otherwise: %v", c.Step, err)
}

// finish lets another process go on, and says that nothing was lost, done twice or left.
func (c *crash) finish(t *testing.T) {
	rdb := c.client()
	defer func() { _ = rdb.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, wait := member(ctx, rdb, c.fate, nil, &noticeboard{})
	defer wait()
	defer cancel()
	topic := map[string]string{"event": rediskey.Event(c.Type), "state": rediskey.State(c.Type)}
	published := func(kind string) map[string][]int {
		entries, err := rdb.XRange(ctx, topic[kind], "-", "+").Result()
		if err != nil {
			return nil
		}
		first := map[string][]int{}
		for _, e := range entries {
			var c struct {
				AggregateID string
				Version     int
			}
			text, _ := e.Values["msg"].(string)
			require.NoError(t, json.Unmarshal([]byte(text), &c))
			if !slices.Contains(first[c.AggregateID], c.Version) {
				first[c.AggregateID] = append(first[c.AggregateID], c.Version)
			}
		}
		return first
	}
	all := map[string][]int{"c-1": upTo(3), "c-2": upTo(3)}
	complete := func(got map[string][]int) bool { return len(got["c-1"]) == 3 && len(got["c-2"]) == 3 }
	require.Eventually(t, func() bool { return complete(published("event")) && complete(published("state")) }, eventually, 5*tick, c.Step)
	require.Equal(t, all, published("event"), "%s: first appearances are in order", c.Step)
	require.Equal(t, slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(published("state"))))
	require.Eventually(t, func() bool { return acknowledged(ctx, rdb, c.Type) && len(unpublished(t, r)) == 0 }, eventually, 5*tick, c.Step) //nolint:contextcheck // the test's own
	for i, command := range c.sent {
		result, err := r.Handle(ctx, command) // the caller who timed out asks again
		require.NoError(t, err)
		require.True(t, result.Duplicate)
		require.Equal(t, i/2+1, result.Version, "%s: the first answer", c.Step)
	}
	for _, id := range []string{"c-1", "c-2"} {
		requireAt(t, r, c.Type.ID(id), 3, 3)
	}
}
