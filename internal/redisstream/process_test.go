package redisstream_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// A process that subscribes is this test binary, with these set.
const (
	addrVariable  = "HEADWATER_TEST_ADDR"
	topicVariable = "HEADWATER_TEST_TOPIC"
)

func TestMain(m *testing.M) {
	if os.Getenv(addrVariable) != "" {
		if err := consume(os.Getenv(addrVariable), os.Getenv(topicVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// consume subscribes until it is killed. A "killer" ends the process, a "slow" message
// waits for a key; each call is added to a list.
func consume(addr, topic string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		os.Exit(0)
	}()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	c := config(topic)
	c.Consumer, c.MaxDeliveries = fmt.Sprint("process-", os.Getpid()), 1
	return redisstream.Subscribe(context.Background(), rdb, c, decode, func(ctx context.Context, m any) error {
		if err := rdb.RPush(ctx, "calls", fmt.Sprint(os.Getpid(), " ", m)).Err(); err != nil {
			return err
		}
		switch {
		case strings.Contains(m.(string), "killer"):
			os.Exit(3)
		case strings.Contains(m.(string), "slow"):
			return rdb.BLPop(ctx, 0, fmt.Sprint("go ", os.Getpid())).Err()
		}
		return nil
	})
}

type process struct {
	*os.Process
	ended chan struct{} // closed when it has ended
}

// run starts a process, killed when the test ends.
func run(t *testing.T, server *redistest.Server, topic string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), addrVariable+"="+server.Addr, topicVariable+"="+topic)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe() // closed when this process ends, however it does
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{cmd.Process, make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // it crashes or is killed
	}()
	t.Cleanup(func() {
		_ = p.Kill()
		<-p.ended
	})
	return p
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// freeze stops all its threads, and waits until they stand still where that can be seen.
func (p *process) freeze(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	eventually(t, "it stands still", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid))
		require.NoError(t, err)
		return !slices.ContainsFunc(threads, func(stat string) bool {
			text, err := os.ReadFile(stat)
			return err == nil && !strings.Contains(string(text), ") T ")
		})
	})
}

func callsOf(t *testing.T, rdb *redis.Client, text string) (n int) {
	t.Helper()
	for _, call := range rdb.LRange(t.Context(), "calls", 0, -1).Val() {
		if strings.HasSuffix(call, " "+text) {
			n++
		}
	}
	return n
}

func TestDLQ02_LOST10_ACrashLoopEndsAndNothingElseIsLost(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	topic := freshTopic()
	group(t, rdb, topic)
	publish(t, rdb, topic, "a|killer", "a|1", "b|1")
	crashes := 0
	for ; crashes < 10; crashes++ {
		p := run(t, server, topic)
		eventually(t, "it crashes, or all is done", func() bool {
			return !p.running() || pending(t, rdb, topic) == 0 && callsOf(t, rdb, "a|1") > 0
		})
		if p.running() {
			break
		}
	}
	require.Equal(t, 3, crashes, "three times MaxDeliveries")
	require.Equal(t, 3, callsOf(t, rdb, "a|killer"))
	require.Positive(t, callsOf(t, rdb, "b|1"))
	all := letters(t, rdb, topic)
	require.Len(t, all, 1)
	require.Equal(t, recovery.Crashed, all[0].Reason)
}

func TestDUP07_LOST07_AProcessThatWasStoppedTakesNothingBack(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb := server.Client(t)
	topic := freshTopic()
	group(t, rdb, topic)
	stale := run(t, server, topic)
	publish(t, rdb, topic, "a|slow")
	eventually(t, "it has begun", func() bool { return callsOf(t, rdb, "a|slow") == 1 })
	stale.freeze(t)
	publish(t, rdb, topic, "b|1") // its read is blocked still, and gets it
	var seen calls
	release := make(chan struct{})
	r := start(t, rdb, config(topic), func(_ context.Context, text string) error {
		if seen.add(text); text == "a|slow" {
			<-release
		}
		return nil
	})
	eventually(t, "another takes over", func() bool { return seen.count("a|slow") == 1 && seen.count("b|1") > 0 && pending(t, rdb, topic) == 1 })
	require.NoError(t, stale.Signal(syscall.SIGCONT))
	require.NoError(t, rdb.RPush(t.Context(), fmt.Sprint("go ", stale.Pid), "x").Err())
	publish(t, rdb, topic, "c|1")
	eventually(t, "the stale one is alive", func() bool { return callsOf(t, rdb, "c|1")+seen.count("c|1") == 1 })
	never(t, "a late ack counts, or what was read too late is handled", 500*time.Millisecond, func() bool {
		return pending(t, rdb, topic) < 1 || callsOf(t, rdb, "b|1") > 0
	})
	close(release)
	drained(t, rdb, topic)
	require.Equal(t, 1, seen.count("a|slow"))
	r.end(t)
}
