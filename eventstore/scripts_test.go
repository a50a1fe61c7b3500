package eventstore_test

import (
	"context"
	"fmt"
	"regexp"
	"sync"
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
)

// beside runs f again and again until the test's work is done.
func beside(t *testing.T, work, f func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				f()
			}
		}
	})
	work()
	close(done)
	wg.Wait()
}

func TestSCR01_FlushedScriptsFailNoAppend(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	typ := newType()
	s := open(c.Client(t), typ)
	require.NoError(t, s.Ready(t.Context(), typ))
	var nodes []*redis.Client
	for _, node := range c.Nodes {
		nodes = append(nodes, node.Client(t))
	}
	const writers, least, enough = 8, 100, 10
	var flushes atomic.Int64
	var appended [writers]int
	beside(t, func() {
		together(writers, func(i int) {
			for version := 1; version <= least || flushes.Load() < enough; version++ {
				if err := appendOne(t, s, commitOf(typ.ID(fmt.Sprint(i)), version)); err != nil {
					t.Errorf("writer %d, version %d: %v", i, version, err)
					return
				}
				appended[i] = version
			}
		})
	}, func() {
		node := nodes[(flushes.Add(1)-1)%int64(len(nodes))]
		if err := node.ScriptFlush(context.WithoutCancel(t.Context())).Err(); err != nil {
			t.Error(err)
		}
	})
	for i, n := range appended {
		require.GreaterOrEqual(t, n, least)
		require.Len(t, collect(t, s.Load(t.Context(), typ.ID(fmt.Sprint(i)), es.Versions{})), n)
	}
}

func TestSCR02_AFlushInTheMiddleOfAPipelineFailsNoAppend(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func() (rdb redis.UniversalClient, flush func() error){
		"standalone": func() (redis.UniversalClient, func() error) {
			rdb := redistest.Standalone(t).Client(t)
			return rdb, func() error { return rdb.ScriptFlush(context.WithoutCancel(t.Context())).Err() }
		},
		"cluster": func() (redis.UniversalClient, func() error) {
			rdb := redistest.NewCluster(t, 0).Client(t)
			return rdb, func() error { return rdb.ScriptFlush(context.WithoutCancel(t.Context())).Err() }
		},
	} {
		rdb, flush := start()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ap, err := rdb.AutoPipeline()
			require.NoError(t, err)
			t.Cleanup(func() { _ = ap.Close() })
			typ := newType()
			s := open(ap, typ)
			require.NoError(t, s.Ready(t.Context(), typ))
			const writers, each = 50, 20
			beside(t, func() {
				together(writers, func(i int) {
					for version := 1; version <= each; version++ {
						done, err := s.Append(t.Context(), es.AppendOptions{}, commitOf(typ.ID(fmt.Sprint(i)), version))
						if err != nil || done.Same {
							t.Errorf("writer %d, version %d: %+v %v", i, version, done, err)
						}
					}
				})
			}, func() {
				if err := flush(); err != nil {
					t.Error(err)
				}
			})
			for i := range writers {
				require.Len(t, collect(t, s.Load(t.Context(), typ.ID(fmt.Sprint(i)), es.Versions{})), each)
			}
		})
	}
}

// Servers from 8 on drop scripts that came by EVAL after 500 others; ours are few.
func TestSCR03_TheTextsOfScriptsAreFewAndFixed(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	for i := range 50 {
		id := typ.ID(fmt.Sprint(i))
		_, err := s.Append(t.Context(), es.AppendOptions{Note: i%2 == 0}, commitsOf(id, 1, 1+i%3)...)
		require.NoError(t, err)
		_, err = s.Published(t.Context(), id, 1, 1)
		require.NoError(t, err)
		require.NoError(t, s.Purge(t.Context(), id, 1+i%3, eventstore.PurgeOptions{}))
	}
	cached := regexp.MustCompile(`number_of_cached_scripts:(\d+)`).FindStringSubmatch(rdb.Info(t.Context(), "memory").Val())
	require.NotNil(t, cached)
	require.Equal(t, "3", cached[1])
}

func TestSCR04_BatchesAreTakenWholeOrRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	typ := newType()
	s := open(rdb, typ)
	for _, n := range []int{eventstore.MaxBatch + 1, 7_999, 8_001, 50_000} {
		commits := make([]es.Commit, n)
		commits[0] = commitOf(typ.ID("a-1"), 1)
		_, err := s.Append(t.Context(), es.AppendOptions{}, commits...)
		require.ErrorIs(t, err, es.ErrTooLarge, "%d", n)
	}
	require.Empty(t, traces(t, rdb, typ.ID("a-1")))
	_, err := s.Append(t.Context(), es.AppendOptions{}, commitsOf(typ.ID("a-1"), 1, eventstore.MaxBatch)...)
	require.NoError(t, err)
	require.Len(t, collect(t, s.Load(t.Context(), typ.ID("a-1"), es.Versions{})), eventstore.MaxBatch)
}

// The script itself unpacks nothing, so it has no such limit.
func TestSCR04_TheScriptTakesMoreThanLuaUnpacks(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	k := rediskey.EventKeys(newType().ID("a-1"))
	const n = 20_000
	args := []any{"1", "", k.Member}
	for i := range n {
		args = append(args, fmt.Sprint("r", i), fmt.Sprint("member ", i))
	}
	for _, want := range []string{"ok", "same"} {
		answer, err := lua.AppendCommits.Run(t.Context(), rdb, []string{k.Stream, k.Requests, k.IDs, k.Purged}, args...)
		require.NoError(t, err)
		require.Equal(t, want, answer)
	}
	require.EqualValues(t, n, rdb.ZCard(t.Context(), k.Stream).Val())
}

func TestSCR05_SomebodysLongScriptIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "lua-time-limit 100")
	rdb := server.Client(t)
	typ := newType()
	s, hasty := open(rdb, typ), open(rdb, typ)
	hasty.Patience = 50 * time.Millisecond
	first := commitOf(typ.ID("a-1"), 1)
	add(t, s, first)
	add(t, hasty, commitOf(typ.ID("a-2"), 1))
	o := server.Options()
	o.ReadTimeout, o.MaxRetries = eventually, -1
	theirs := redis.NewClient(o)
	t.Cleanup(func() { _ = theirs.Close() })

	ended := make(chan error, 1)
	go func() { ended <- theirs.Eval(t.Context(), "while true do end", nil).Err() }()
	require.Eventually(t, func() bool { return redis.HasErrorPrefix(rdb.Ping(t.Context()).Err(), "BUSY") }, eventually, tick)
	require.ErrorIs(t, appendOne(t, hasty, commitOf(typ.ID("a-2"), 2)), es.ErrUnavailable, "patience ends")
	_, err := hasty.Last(t.Context(), typ.ID("a-2"))
	require.ErrorIs(t, err, es.ErrUnavailable)

	appended := make(chan error, 2)
	s.Patience = eventually
	go func() { appended <- appendOne(t, s, commitOf(typ.ID("a-1"), 2)) }()
	go func() { _, err := s.Last(t.Context(), typ.ID("a-2")); appended <- err }()
	require.Never(t, func() bool { return len(appended)+len(ended) > 0 }, 300*time.Millisecond, tick, "nobody kills the script")
	require.NoError(t, rdb.ScriptKill(t.Context()).Err())
	require.Error(t, <-ended)
	require.NoError(t, <-appended)
	require.NoError(t, <-appended)
	require.Len(t, collect(t, s.Load(t.Context(), typ.ID("a-1"), es.Versions{})), 2)
	require.Len(t, collect(t, s.Load(t.Context(), typ.ID("a-2"), es.Versions{})), 1, "the refused one was not stored")
}
