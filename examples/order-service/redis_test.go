package main

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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

// stopAt runs the program and sends it a signal after one of its first progress lines.
func stopAt(t *testing.T, program, url string, signal syscall.Signal) (code int, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "--redis", url, "--json")
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(pipe)
	for range 1 + rand.IntN(4) {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "commands")
	}
	require.NoError(t, cmd.Process.Signal(signal))
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(rest))
}
