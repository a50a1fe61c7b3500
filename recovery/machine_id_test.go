package recovery_test

import (
	"context"
	"errors"
	"sync"
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
	require.NoError(t, rdb.Del(t.Context(), rediskey.Machine(last.Number)).Err()) // or the next run waits a minute
}
