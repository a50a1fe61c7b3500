package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
)

// Servers says how the servers are reached.
type Servers struct {
	// Addrs are the server, the nodes of the cluster, or the sentinels.
	Addrs []string
	// Cluster says that they are a cluster.
	Cluster bool
	// MasterName is what the sentinels call the master; "" = there are none.
	MasterName string
	// Through is where to connect instead of an address.
	Through map[string]string
}

// Client is a client of the servers.
func (s Servers) Client() redis.UniversalClient {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if through, ok := s.Through[addr]; ok {
			addr = through
		}
		d := net.Dialer{Timeout: time.Second}
		return d.DialContext(ctx, network, addr)
	}
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch {
	case s.Cluster:
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: s.Addrs, Dialer: dial, ReadTimeout: time.Second, ClusterStateReloadInterval: time.Second, MaintNotificationsConfig: quiet,
		})
	case s.MasterName != "":
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: s.MasterName, SentinelAddrs: s.Addrs, Dialer: dial, ReadTimeout: time.Second, PoolSize: 30,
		})
	}
	return redis.NewClient(&redis.Options{Addr: s.Addrs[0], Dialer: dial, ReadTimeout: time.Second, MaintNotificationsConfig: quiet})
}

// WorkerVariable is the environment variable that holds a [Worker], for the process that
// is to be one.
const WorkerVariable = "HEADWATER_SOAK_WORKER"

// Worker is a process that handles messages.
type Worker struct {
	Servers Servers
	// Ledger is the file that it writes.
	Ledger string
	// CommitsOnly keeps it from commands, some of which would kill it.
	CommitsOnly bool
}

// Work is the main function of a worker: it handles messages until ctx is done.
func Work(ctx context.Context, encoded string) error {
	var w Worker
	if err := json.Unmarshal([]byte(encoded), &w); err != nil {
		return err
	}
	ledger, err := OpenLedger(w.Ledger)
	if err != nil {
		return err
	}
	rdb := w.Servers.Client()
	defer rdb.Close() //nolint:errcheck // the process ends
	h := &handler{ledger}
	var running sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	run := func(subscribe func() error) {
		running.Go(func() {
			// A server may be down or another one be elected while a worker starts.
			for err := subscribe(); err != nil && ctx.Err() == nil; err = subscribe() {
				if !errors.Is(err, es.ErrUnavailable) && !errors.Is(err, es.ErrUncertain) {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	commands, events := commandbus.New(rdb, Codec()), eventbus.New(rdb, Codec())
	if !w.CommitsOnly {
		run(func() error { return commands.Subscribe(ctx, subscription(CommandGroup), h.command) })
	}
	for _, group := range EventGroups {
		run(func() error { return events.Subscribe(ctx, subscription(group), h.commit) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// handler does with each message what its fate is, and writes it down.
type handler struct{ ledger *Ledger }

func (h *handler) command(ctx context.Context, c es.Command) (es.Result, error) {
	body, ok := c.Body.(Do)
	if !ok {
		return es.Result{}, es.Permanent(fmt.Errorf("a %T is no command of ours", c.Body))
	}
	return es.Result{}, h.handle(ctx, body.N, c.Aggregate.ID)
}

func (h *handler) commit(ctx context.Context, c es.Commit) error {
	body, ok := c.Events[0].Body.(Done)
	if !ok {
		return es.Permanent(fmt.Errorf("a %T is no event of ours", c.Events[0].Body))
	}
	return h.handle(ctx, body.N, c.Aggregate.ID)
}

func (h *handler) handle(ctx context.Context, n int, aggregate string) error {
	d, _ := es.DeliveryOf(ctx)
	r := Record{Begun, 0, d.Topic, d.Group, d.ID, n, aggregate, d.Attempt, d.Recovered}
	if err := h.ledger.Write(r); err != nil {
		return err
	}
	took := rand.N(10 * time.Millisecond)
	fate := FateOf(n)
	if fate == Slow {
		took = 3 * Lease / 2
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	err := suffer(fate, n, &d)
	r.What = Handled
	if err != nil {
		r.What = Failed
	}
	return errors.Join(err, h.ledger.Write(r))
}

// suffer is the fate of a message.
func suffer(fate Fate, n int, d *es.Delivery) error {
	cause := errors.New(Cause(n))
	switch {
	case fate == Killer, fate == Crash && !d.Recovered:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case fate == Panics && d.Attempt == 1:
		panic(cause)
	case fate == Flaky && d.Attempt <= 1+n%2, fate == Poison:
		return cause
	case fate == Permanent:
		return es.Permanent(cause)
	}
	return nil
}
