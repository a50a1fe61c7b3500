package soak_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/internal/soak"
)

// berth is a place in the crew: whenever its process ends, another one takes it.
type berth struct {
	name    string
	dir     string
	worker  soak.Worker
	proxies []*redistest.Proxy

	mu      sync.Mutex
	cmd     *exec.Cmd
	life    io.Closer // its standard input: it ends with us
	started int
	closing bool     // no other process follows
	faults  []string // processes that ended otherwise than by a kill or as they were told
	died    int      // by a kill, whoever it was
	gone    chan struct{}
}

// newBerth is a berth whose processes reach each node through a proxy of their own;
// a steady one reaches them without, and reads commits only.
func newBerth(t *testing.T, top *topology, dir, name string, steady bool) *berth {
	t.Helper()
	b := &berth{name: name, dir: dir, gone: make(chan struct{})}
	b.worker.Servers, b.worker.CommitsOnly = top.servers, steady
	if !steady {
		b.worker.Servers.Through = map[string]string{}
		for _, node := range top.nodes {
			p := redistest.NewProxy(t, node.Addr)
			b.proxies = append(b.proxies, p)
			b.worker.Servers.Through[node.Addr] = p.Addr
		}
	}
	go b.run()
	t.Cleanup(func() {
		b.close()
		b.signal(syscall.SIGKILL)
		<-b.gone
	})
	return b
}

// run starts one process after the other.
func (b *berth) run() {
	defer close(b.gone)
	for {
		cmd, err := b.start()
		if cmd == nil && err == nil {
			return
		}
		if err == nil {
			err = cmd.Wait()
		}
		b.mu.Lock()
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		switch {
		case cmd.ProcessState != nil && status.Signaled() && status.Signal() == syscall.SIGKILL:
			b.died++
		case err != nil:
			b.faults = append(b.faults, fmt.Sprintf("%s: %v; see its log", filepath.Base(b.log()), err))
		}
		b.mu.Unlock()
		time.Sleep(upTo(1500 * time.Millisecond))
	}
}

func (b *berth) ledger() string {
	return filepath.Join(b.dir, fmt.Sprintf("%s-%d.ledger", b.name, b.started))
}
func (b *berth) log() string {
	return filepath.Join(b.dir, fmt.Sprintf("%s-%d.log", b.name, b.started))
}

func (b *berth) start() (*exec.Cmd, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return nil, nil
	}
	b.started++
	b.worker.Ledger = b.ledger()
	encoded, err := json.Marshal(b.worker)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(b.log())
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has it
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), soak.WorkerVariable+"="+string(encoded))
	cmd.Stdout, cmd.Stderr = log, log
	if b.life, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	b.cmd = cmd
	return cmd, cmd.Start()
}

// signal sends sig to the process, if there is one.
func (b *berth) signal(sig syscall.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cmd != nil && b.cmd.Process != nil {
		_ = b.cmd.Process.Signal(sig) // it may just have ended
	}
}

func (b *berth) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closing = true
}

// retire ends the process as a deploy does, for good, and says what is wrong about how
// it and its predecessors ended.
func (b *berth) retire(patience time.Duration) (faults []string) {
	b.close()
	b.signal(syscall.SIGTERM)
	select {
	case <-b.gone:
	case <-time.After(patience):
		faults = append(faults, fmt.Sprintf("%s did not end within %v", b.name, patience))
		b.signal(syscall.SIGABRT) // its stacks are in its log then
		<-b.gone
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(faults, b.faults...)
}

func (b *berth) deaths() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.died
}
