package soak_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/soak"
)

var (
	seconds      = flag.Int("soak.seconds", 0, "how long to break things; 0 = TestSoak is skipped")
	topologyName = flag.String("soak.topology", "standalone", "standalone, cluster or sentinel")
	rate         = flag.Int("soak.rate", 150, "numbers a second")
	workers      = flag.Int("soak.workers", 4, "processes that are harmed, beside the steady one")
)

// summary is the last line of the output.
var summary string

func TestMain(m *testing.M) {
	if encoded := os.Getenv(soak.WorkerVariable); encoded != "" {
		os.Exit(work(encoded))
	}
	redis.SetLogger(silence{}) // the progress says whether the server answers
	code := m.Run()
	if summary != "" {
		fmt.Println(summary)
	}
	os.Exit(code)
}

// silence is a logger.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// work is a worker process: it ends when it is told to, or with the process that started it.
func work(encoded string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	if err := soak.Work(ctx, encoded); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// show prints at once, which t.Log does not.
func show(start time.Time, format string, args ...any) {
	fmt.Printf("%4.0fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
}

func TestSoak(t *testing.T) {
	if *seconds == 0 {
		t.Skip("make soak runs it")
	}
	summary = "soak: FAILED before the end"
	start := time.Now()
	top := newTopology(t, *topologyName)
	dir, err := os.MkdirTemp("", "headwater-soak-") //nolint:usetesting // it stays where the test fails
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			show(start, "ledgers and logs are in %s", dir)
			return
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	rdb := top.servers.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	c := &chaos{top: top, rdb: rdb, done: map[string]int{}}
	steady := newBerth(t, top, dir, "steady", true)
	for i := range *workers {
		c.crew = append(c.crew, newBerth(t, top, dir, fmt.Sprintf("worker%d", i), false))
	}
	p := soak.NewProducers(rdb, *rate)
	ctx, stop := context.WithCancel(t.Context())
	produced := make(chan struct{})
	go func() {
		defer close(produced)
		p.Run(ctx, time.Minute)
	}()
	breakThings(t, c, p, start)
	stop()
	c.end()
	<-produced
	faults := drain(t, rdb, start)
	everybody := append(slices.Clone(c.crew), steady)
	died := 0
	for _, b := range everybody {
		died += b.deaths()
		faults["a worker ended badly"] = append(faults["a worker ended badly"], b.retire(2*time.Second+soak.Grace)...)
	}
	reaped, orphans, err := soak.Orphans(t.Context(), rdb)
	require.NoError(t, err)
	faults["orphans"] = orphans
	v := judge(t, c, p, dir)
	maps.Copy(v.Faults, faults)
	report(t, v, start)
	happened := tally(c.done)
	summary = fmt.Sprintf("soak: %s on %s, %ds: %d numbers confirmed, %d sent again, %d entries (%d garbage), %d lost by Redis; %d handled, %d of them again, %d recovered; letters %v; %d worker deaths (%s); %d consumers reaped",
		outcome(t), *topologyName, *seconds, p.Sent.Load(), p.Unsure.Load(), v.Entries, p.Garbage.Load(), v.LostByRedis, v.Handled, v.Again, v.Recovered, v.Letters, died, happened, reaped)
}

func outcome(t *testing.T) string {
	t.Helper()
	if t.Failed() {
		return "FAILED"
	}
	return "nothing lost"
}

// breakThings harms workers all the time, and servers now and then.
func breakThings(t *testing.T, c *chaos, p *soak.Producers, start time.Time) {
	t.Helper()
	end := start.Add(time.Duration(*seconds) * time.Second)
	nextServers, nextShow := time.Now().Add(8*time.Second), time.Now()
	for time.Now().Before(end) {
		servers := time.Now().After(nextServers)
		c.step(t, servers)
		if servers {
			nextServers = time.Now().Add(8*time.Second + upTo(8*time.Second))
		}
		if time.Now().After(nextShow) {
			nextShow = time.Now().Add(5 * time.Second)
			unread, pending, _, err := soak.Backlog(t.Context(), c.rdb)
			state := fmt.Sprintf("%d unread, %d pending", unread, pending)
			if err != nil {
				state = "the server does not answer"
			}
			show(start, "%d confirmed, %d sent again; %s; %s", p.Sent.Load(), p.Unsure.Load(), state, tally(c.done))
		}
		time.Sleep(300*time.Millisecond + upTo(time.Second))
	}
}

func tally(done map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(done)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, done[what]))
	}
	return strings.Join(parts, ", ")
}

// drain waits until nothing is unread and nothing pending, for as long as there is
// progress and a while longer.
func drain(t *testing.T, rdb redis.UniversalClient, start time.Time) map[string][]string {
	t.Helper()
	show(start, "all is healed; waiting until everything is handled")
	best, progress, nextShow := int64(-1), time.Now(), time.Now()
	for {
		unread, pending, where, err := soak.Backlog(t.Context(), rdb)
		left := unread + pending
		switch {
		case err == nil && left == 0:
			return map[string][]string{}
		case err == nil && (best < 0 || left < best):
			best, progress = left, time.Now()
		case time.Since(progress) > time.Minute:
			return map[string][]string{"not handled after a minute without progress": append(where, fmt.Sprint(err))}
		}
		if time.Now().After(nextShow) {
			nextShow = time.Now().Add(5 * time.Second)
			show(start, "%d unread, %d pending", unread, pending)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func judge(t *testing.T, c *chaos, p *soak.Producers, dir string) *soak.Verdict {
	t.Helper()
	e := &soak.Evidence{Groups: soak.Groups(), Ledgers: map[string][]soak.Record{}, Steady: "steady-1.ledger", Confirmed: p.Confirmed(), Troubles: c.troubles, Lossy: c.top.lossy}
	var err error
	e.Streams, err = soak.Streams(t.Context(), c.rdb)
	require.NoError(t, err)
	e.Letters, err = soak.Letters(t.Context(), c.rdb)
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(dir, "*.ledger"))
	require.NoError(t, err)
	for _, path := range paths {
		e.Ledgers[filepath.Base(path)], err = soak.ReadLedger(path)
		require.NoError(t, err)
	}
	require.NotEmpty(t, e.Ledgers[e.Steady], "the steady worker has handled something")
	return soak.Judge(e)
}

// report fails the test for each kind of fault, with its first cases.
func report(t *testing.T, v *soak.Verdict, start time.Time) {
	t.Helper()
	for _, kind := range slices.Sorted(maps.Keys(v.Faults)) {
		cases := v.Faults[kind]
		if len(cases) == 0 {
			continue
		}
		t.Fail()
		show(start, "FAULT: %s: %d cases", kind, len(cases))
		for _, text := range cases[:min(len(cases), 10)] {
			fmt.Println("       ", text)
		}
	}
}
