package recovery_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

var ranges struct {
	sync.Mutex
	next int
}

// machines are n numbers that no other test leases.
func machines(n int, lease time.Duration) recovery.MachineOptions {
	ranges.Lock()
	defer ranges.Unlock()
	ranges.next += n
	return recovery.MachineOptions{From: ranges.next - n + 1, To: ranges.next, Lease: lease}
}

func leaseOne(t testing.TB, rdb redis.UniversalClient, o recovery.MachineOptions) *recovery.MachineID {
	t.Helper()
	m, err := recovery.LeaseMachineID(t.Context(), rdb, o)
	require.NoError(t, err)
	require.True(t, m.Held())
	return m
}

// keep runs Keep until end is called, which returns what Keep returns.
func keep(t testing.TB, m *recovery.MachineID) (end func() error, lost <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Keep(ctx) }()
	t.Cleanup(cancel)
	return func() error { cancel(); return <-done }, done
}

func TestNoTwoHoldersShareAMachineNumber(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		o := machines(20, 0)
		numbers := make(chan int, 25)
		var wg sync.WaitGroup
		for range 25 {
			wg.Go(func() {
				m, err := recovery.LeaseMachineID(t.Context(), rdb, o)
				if err != nil {
					if !errors.Is(err, recovery.ErrNoMachineFree) {
						panic(err)
					}
					return
				}
				numbers <- m.Number
			})
		}
		wg.Wait()
		close(numbers)
		seen := map[int]bool{}
		for n := range numbers {
			require.False(t, seen[n], "%d", n)
			require.True(t, n >= o.From && n <= o.To, "%d", n)
			seen[n] = true
		}
		require.Len(t, seen, 20, "all of the range, and nobody twice")
		_, err := recovery.LeaseMachineID(t.Context(), rdb, o)
		require.ErrorIs(t, err, recovery.ErrNoMachineFree)
	})
}

func TestAMachineNumberIsRenewedUntilTheContextIsDone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		o := machines(1, 2*time.Second)
		m := leaseOne(t, rdb, o)
		end, lost := keep(t, m)
		for range 2 { // leases
			waited := time.Now()
			require.Eventually(t, func() bool { return time.Since(waited) > o.Lease }, patience, pause)
			require.True(t, m.Held())
			_, err := recovery.LeaseMachineID(t.Context(), rdb, o)
			require.ErrorIs(t, err, recovery.ErrNoMachineFree)
		}
		require.Empty(t, lost)
		require.NoError(t, end())
		require.False(t, m.Held(), "it was given back")
		require.Eventually(t, func() bool {
			_, err := recovery.LeaseMachineID(t.Context(), rdb, o)
			return err == nil
		}, patience, pause)
	})
}

// A minute's lease is free again after a second, since clocks differ.
func TestAMachineNumberThatWasGivenBackIsSoonFree(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	o := machines(1, 0)
	m := leaseOne(t, rdb, o)
	left, err := rdb.PTTL(t.Context(), rediskey.Machine(m.Number)).Result()
	require.NoError(t, err)
	require.Greater(t, left, 50*time.Second)
	end, _ := keep(t, m)
	require.NoError(t, end())
	left, err = rdb.PTTL(t.Context(), rediskey.Machine(m.Number)).Result()
	require.NoError(t, err)
	require.LessOrEqual(t, left, time.Second)
}

func TestAHolderWithoutAServerKnowsWhenItsNumberMayBeLost(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	o := machines(1, 4*time.Second)
	m := leaseOne(t, server.Client(t), o)
	_, lost := keep(t, m)
	before := time.Now()
	server.Pause(t) // no reply ever comes
	require.ErrorIs(t, <-lost, recovery.ErrMachineLost)
	require.False(t, m.Held())
	require.Less(t, time.Since(before), o.Lease, "before the server may give it to another")
}

func TestAShortFailureLosesNoMachineNumber(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t, "appendonly yes", "appendfsync always")
	m := leaseOne(t, server.Client(t), machines(1, 20*time.Second))
	end, lost := keep(t, m)
	server.Restart(t)
	require.Empty(t, lost)
	require.True(t, m.Held())
	require.NoError(t, end())
}

func TestAMachineNumberThatAnotherTookIsLost(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		o := machines(1, 8*time.Second)
		m := leaseOne(t, rdb, o)
		require.NoError(t, rdb.Del(t.Context(), rediskey.Machine(m.Number)).Err()) // as a failover may forget it
		other := leaseOne(t, rdb, o)
		require.Equal(t, m.Number, other.Number)
		_, lost := keep(t, m)
		require.ErrorIs(t, <-lost, recovery.ErrMachineLost)
		require.False(t, m.Held())
		require.True(t, other.Held())
	})
}

func TestAMachineNumberIsForAnIDGenerator(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	m := leaseOne(t, rdb, recovery.MachineOptions{})
	require.GreaterOrEqual(t, m.Number, (es.MaxMachine+1)/2, "the upper half")
	ids, err := es.NewIDGenerator(m.Number)
	require.NoError(t, err)
	id, err := es.ParseID(ids.New())
	require.NoError(t, err)
	require.Equal(t, m.Number, id.Machine)
}

func TestWrongRangesOfMachinesAreRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for _, o := range []recovery.MachineOptions{
		{From: -1, To: 1}, {From: 2, To: 1}, {To: es.MaxMachine + 1}, {From: 1, To: 1, Lease: time.Millisecond}, {Lease: -time.Second},
	} {
		_, err := recovery.LeaseMachineID(t.Context(), rdb, o)
		require.ErrorIs(t, err, es.ErrInvalid)
	}
	last := leaseOne(t, rdb, recovery.MachineOptions{From: es.MaxMachine, To: es.MaxMachine})
	require.Equal(t, es.MaxMachine, last.Number)
}

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
