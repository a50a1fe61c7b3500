package recovery_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

const holderVariable = "RECOVERY_TEST_MACHINE"

// TestMachineHolder is no test: it is what the processes that the next test starts run.
func TestMachineHolder(t *testing.T) {
	spec := os.Getenv(holderVariable)
	if spec == "" {
		t.Skip("it is run by TestProcesses…")
	}
	addr, rest, _ := strings.Cut(spec, " ")
	var o recovery.MachineOptions
	_, err := fmt.Sscan(rest, &o.From, &o.To, &o.Lease)
	require.NoError(t, err)
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	m, err := recovery.LeaseMachineID(t.Context(), rdb, o)
	if err != nil {
		fmt.Println("holder: error", err)
		return
	}
	fmt.Println("holder: has", m.Number)
	fmt.Println("holder: lost", errors.Is(m.Keep(t.Context()), recovery.ErrMachineLost), m.Held())
}

// process is a holder in a process of its own.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startHolder(t *testing.T, server *redistest.Server, o recovery.MachineOptions) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMachineHolder$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %d", holderVariable, server.Addr, o.From, o.To, o.Lease))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{cmd, bufio.NewScanner(out)}
}

// next is what the holder says next.
func (p *process) next(t *testing.T) string {
	t.Helper()
	for p.lines.Scan() {
		if said, ok := strings.CutPrefix(p.lines.Text(), "holder: "); ok {
			return said
		}
	}
	t.Fatal("the process has ended")
	return ""
}

func TestProcessesNeverShareAMachineNumberAndAPausedOneLearnsOfItsLoss(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	from := rand.IntN(1000)
	o := recovery.MachineOptions{From: from, To: from + 1, Lease: 4 * time.Second}
	a, b := startHolder(t, server, o), startHolder(t, server, o)
	saidA, saidB := a.next(t), b.next(t)
	require.ElementsMatch(t, []string{fmt.Sprint("has ", from), fmt.Sprint("has ", from+1)}, []string{saidA, saidB})
	require.Contains(t, startHolder(t, server, o).next(t), recovery.ErrNoMachineFree.Error())

	require.NoError(t, a.cmd.Process.Signal(syscall.SIGSTOP))
	var third *recovery.MachineID
	require.Eventually(t, func() (free bool) {
		m, err := recovery.LeaseMachineID(t.Context(), rdb, o)
		third = m
		return err == nil
	}, patience, pause, "the lease of the paused one runs out")
	require.Equal(t, "has "+strconv.Itoa(third.Number), saidA)
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGCONT))
	require.Equal(t, "lost true false", a.next(t))
	require.True(t, third.Held())
}
