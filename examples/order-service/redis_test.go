package main

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

// build makes the program that the tests below run and kill.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "order-service")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// replayed runs the program to its end; further flags may follow.
func replayed(t *testing.T, program string, flags ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append(flags, "--json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	require.Equal(t, 1, bytes.Count(stdout, []byte("\n")), "standard output has nothing but the line")
	return lastLine(t, string(stdout))
}

func TestWholeLogOnTheBuiltInServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the whole log, on a slow server")
	}
	require.Equal(t, wholeLog(38685, 0), replayed(t, build(t)))
}

func TestSecondRunFindsEverythingDone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the whole log, twice")
	}
	program, url := build(t), "redis://"+redistest.Standalone(t).Addr
	require.Equal(t, wholeLog(38685, 0), replayed(t, program, "--redis", url))
	require.Equal(t, wholeLog(0, 38685), replayed(t, program, "--redis", url))
}

// The totals of the first 3000 commands were counted from the log with another program.
func TestClusterAndSentinelGiveTheSameTotals(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"cluster": func(t *testing.T) string {
			return "redis+cluster://" + redistest.SharedCluster(t).Nodes[1].Addr
		},
		"sentinel": func(t *testing.T) string {
			s := redistest.SharedSentinel(t)
			return "redis+sentinel://" + strings.Join(s.SentinelAddrs, ",") + "/" + s.MasterName
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := outcome{Commands: 3000, Applied: 3000, OrdersPaid: 127, PaidTotal: "261372.58", ItemsPacked: 589, PackagesDelivered: 86}
			args := []string{"--limit", "3000", "--json", "--redis", url(t)}
			for range 2 {
				var stdout, stderr bytes.Buffer
				require.Equal(t, exitOK, run(t.Context(), args, &stdout, &stderr), "%s", &stderr)
				require.Equal(t, want, lastLine(t, stdout.String()))
				want.Applied, want.Duplicates = 0, 3000 // the second time
			}
		})
	}
}

// A process is killed, the next one interrupted, both somewhere in the middle; the
// third ends with the same totals as one that nobody disturbed.
func TestKilledReplayGoesOn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the whole log, in three parts")
	}
	program, url := build(t), "redis://"+redistest.Standalone(t).Addr
	stopAt(t, program, url, syscall.SIGKILL)
	code, stderr := stopAt(t, program, url, syscall.SIGINT)
	require.Equal(t, exitInterrupted, code)
	require.Contains(t, stderr, "stopped after")
	require.Contains(t, stderr, "run the same command line again")

	last := replayed(t, program, "--redis", url)
	require.Positive(t, last.Applied, "the signals came too late")
	require.Positive(t, last.Duplicates, "the signals came too early")
	require.Equal(t, wholeLog(38685-last.Duplicates, 38685-last.Applied), last)
}

// Of two workers in processes of their own one is killed while it holds commands. The
// replay, which is a third process, counts as if nothing had happened.
func TestKilledWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the whole log")
	}
	program, server := build(t), redistest.Standalone(t)
	rdb, url := server.Client(t), "redis://"+server.Addr
	doomed, _ := start(t, program, "worker", "--redis", url)
	var name string
	require.Eventually(t, func() bool {
		consumers := rdb.ZRange(t.Context(), "{"+topics[2]+"}:lease:"+group, 0, -1).Val()
		name = strings.Join(consumers, " ")
		return name != ""
	}, 30*time.Second, 10*time.Millisecond)
	survivor, survivorSays := start(t, program, "worker", "--redis", url)

	replay, says := start(t, program, "replay", "--redis", url, "--json")
	awaitProgress(t, says, 2)
	require.NoError(t, doomed.Process.Kill())
	require.Error(t, doomed.Wait())
	held := 0
	for _, topic := range topics {
		held += int(rdb.XPending(t.Context(), topic, group).Val().Consumers[name])
	}
	require.Positive(t, held, "it was killed while it held commands")

	_, err := io.Copy(io.Discard, says)
	require.NoError(t, err)
	require.NoError(t, replay.Wait())
	require.Equal(t, wholeLog(38685, 0), lastLine(t, replay.Stdout.(*bytes.Buffer).String()))
	require.Eventually(t, func() bool { // the last acknowledgements are on their way
		left := int64(0)
		for _, topic := range topics {
			left += rdb.XPending(t.Context(), topic, group).Val().Count
		}
		return left == 0
	}, 10*time.Second, 10*time.Millisecond)

	require.NoError(t, survivor.Process.Signal(syscall.SIGINT))
	rest, err := io.ReadAll(survivorSays)
	require.NoError(t, err)
	require.NoError(t, survivor.Wait(), "Ctrl-C is how a worker ends")
	require.Contains(t, string(rest), "commands answered by this worker")
	require.NotContains(t, string(rest), "\n0 commands", "it had its share")
	require.Equal(t, wholeLog(0, 38685), replayed(t, program, "--redis", url))
}

// Each command is applied for one of two replays that run at once, and a duplicate for
// the other.
func TestTwoReplaysAtOnceShareTheWork(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Standalone(t).Addr
	var stdout, stderr [2]bytes.Buffer
	var running sync.WaitGroup
	for i := range 2 {
		running.Go(func() {
			run(t.Context(), []string{"--limit", "3000", "--json", "--redis", url}, &stdout[i], &stderr[i])
		})
	}
	running.Wait()
	one, other := lastLine(t, stdout[0].String()), lastLine(t, stdout[1].String())
	require.Equal(t, 3000, one.Applied+other.Applied, "%+v %+v", one, other)
	require.Equal(t, 3000, one.Duplicates+other.Duplicates)
	for _, o := range []outcome{one, other} {
		require.Equal(t, outcome{3000, o.Applied, o.Duplicates, 0, 127, "261372.58", 589, 86, 0, 0}, o)
	}
}

const group = "order-service.CommandDispatcher"

var topics = []string{"order-service.order:command", "order-service.item:command", "order-service.package:command"}

// start runs the program beside the test, and returns what it says on standard error.
func start(t *testing.T, program string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout = &bytes.Buffer{}
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewReader(pipe)
}

func awaitProgress(t *testing.T, stderr *bufio.Reader, lines int) {
	t.Helper()
	for range lines {
		line, err := stderr.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "commands")
	}
}

// stopAt runs the program and sends it a signal after one of its first progress lines.
func stopAt(t *testing.T, program, url string, signal syscall.Signal) (code int, stderr string) {
	t.Helper()
	cmd, lines := start(t, program, "--redis", url, "--json")
	awaitProgress(t, lines, 1+rand.IntN(4))
	require.NoError(t, cmd.Process.Signal(signal))
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(rest))
}
