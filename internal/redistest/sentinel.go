package redistest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinel is a master, its replica, and three sentinels that watch them.
type Sentinel struct {
	// MasterName is what the sentinels call the master.
	MasterName string
	// SentinelAddrs are the addresses of the sentinels.
	SentinelAddrs []string
	// Nodes are the first master and its replica; Failover changes their roles.
	Nodes []*Server
	// Sentinels are the processes behind SentinelAddrs.
	Sentinels []*Server
}

// See the cluster's node timeouts.
const (
	sharedDownAfter = 30 * time.Second
	ownDownAfter    = time.Second
)

var sharedSentinel = sync.OnceValues(func() (*Sentinel, error) { return newSentinel(sharedDownAfter) })

// SharedSentinel is a Sentinel set-up that all tests of the process share.
func SharedSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s, err := sharedSentinel()
	must(t, err)
	return s
}

// NewSentinel is a Sentinel set-up of the test's own, stopped when the test ends. A
// master that is silent for a second counts as down; two sentinels must agree on it.
func NewSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s, err := newSentinel(ownDownAfter)
	must(t, err)
	t.Cleanup(s.discard)
	return s
}

func newSentinel(downAfter time.Duration) (*Sentinel, error) {
	s := &Sentinel{MasterName: "headwater"}
	if err := s.startAll(downAfter); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

func (s *Sentinel) startAll(downAfter time.Duration) error {
	master, err := newServer(nil)
	if err != nil {
		return err
	}
	s.Nodes = append(s.Nodes, master)
	replica, err := newServer([]string{fmt.Sprintf("replicaof 127.0.0.1 %d", master.port)})
	if err != nil {
		return err
	}
	s.Nodes = append(s.Nodes, replica)
	if err := poll("replica "+replica.Addr, func(ctx context.Context) error { return replica.with(inStep(ctx)) }); err != nil {
		return err
	}
	for range 3 {
		sentinel, err := newServer([]string{
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", s.MasterName, master.port),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", s.MasterName, downAfter.Milliseconds()),
			fmt.Sprintf("sentinel failover-timeout %s 5000", s.MasterName),
		}, "--sentinel")
		if err != nil {
			return err
		}
		s.Sentinels = append(s.Sentinels, sentinel)
		s.SentinelAddrs = append(s.SentinelAddrs, sentinel.Addr)
		if err := hasten(sentinel); err != nil {
			return err
		}
	}
	return s.awaitReady(master)
}

// hasten lets a sentinel look and talk more often than every ten and two seconds.
// Redis 6.2 has no such command and takes its time.
func hasten(sentinel *Server) error {
	return sentinel.with(func(r *redis.Client) error {
		err := r.Do(context.Background(), "SENTINEL", "DEBUG", "info-period", 500, "publish-period", 200).Err()
		if err != nil && strings.HasPrefix(err.Error(), "ERR Unknown") {
			return nil
		}
		return err
	})
}

func (s *Sentinel) discard() {
	for _, server := range append(s.Sentinels, s.Nodes...) {
		server.discard()
	}
}

// awaitReady waits until every sentinel calls master the master and knows its replica
// in step, and the two other sentinels.
func (s *Sentinel) awaitReady(master *Server) error {
	for _, sentinel := range s.Sentinels {
		err := poll("sentinel "+sentinel.Addr, func(ctx context.Context) error {
			return s.ask(sentinel, func(c *redis.SentinelClient) error {
				m, err := c.Master(ctx, s.MasterName).Result()
				if err != nil {
					return err
				}
				if m["port"] != fmt.Sprint(master.port) || m["flags"] != "master" || m["num-other-sentinels"] != "2" {
					return fmt.Errorf("it says %v", m)
				}
				replicas, err := c.Replicas(ctx, s.MasterName).Result()
				if err != nil {
					return err
				}
				if len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" {
					return fmt.Errorf("its replicas: %v", replicas)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Sentinel) ask(sentinel *Server, f func(c *redis.SentinelClient) error) error {
	c := redis.NewSentinelClient(sentinel.Options())
	defer c.Close() //nolint:errcheck // f has its replies
	return f(c)
}

// Options are for a client of the master that the test wants to adjust.
func (s *Sentinel) Options() *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName:    s.MasterName,
		SentinelAddrs: s.SentinelAddrs,
		DialTimeout:   time.Second,
		ReadTimeout:   5 * time.Second,
	}
}

// Client is a new client that asks the sentinels for the master, closed when the test ends.
func (s *Sentinel) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewFailoverClient(s.Options())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Master is the server that most sentinels call the master.
func (s *Sentinel) Master(t testing.TB) *Server {
	t.Helper()
	var master *Server
	must(t, poll("master", func(ctx context.Context) error {
		votes := map[string]int{}
		for _, sentinel := range s.Sentinels {
			_ = s.ask(sentinel, func(c *redis.SentinelClient) error { // who is down has no vote
				addr, err := c.GetMasterAddrByName(ctx, s.MasterName).Result()
				if err == nil {
					votes[addr[1]]++
				}
				return err
			})
		}
		for _, node := range s.Nodes {
			if votes[fmt.Sprint(node.port)] > len(s.Sentinels)/2 {
				master = node
				return nil
			}
		}
		return fmt.Errorf("no majority: %v", votes)
	}))
	return master
}

// Failover makes the replica the master, in order, and waits until the old master
// follows it and every sentinel says so.
func (s *Sentinel) Failover(t testing.TB) {
	t.Helper()
	old := s.Master(t)
	must(t, poll("failover", func(ctx context.Context) error {
		return s.ask(s.Sentinels[0], func(c *redis.SentinelClient) error { return c.Failover(ctx, s.MasterName).Err() })
	}))
	must(t, s.awaitReady(s.AwaitFailover(t, old)))
}

// AwaitFailover waits until another server than old, which the test has killed or
// paused, is the master, and takes writes.
func (s *Sentinel) AwaitFailover(t testing.TB, old *Server) *Server {
	t.Helper()
	var master *Server
	must(t, poll("failover from "+old.Addr, func(ctx context.Context) error {
		if master = s.Master(t); master == old {
			return errors.New("it is still the master")
		}
		return master.with(func(r *redis.Client) error {
			role, err := r.Do(ctx, "ROLE").Slice()
			if err == nil && role[0] != "master" {
				err = fmt.Errorf("%s says it is %v", master.Addr, role[0])
			}
			return err
		})
	}))
	return master
}
