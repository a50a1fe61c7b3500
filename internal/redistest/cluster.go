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
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	masters = 3
	slots   = 16384
)

// Cluster is a Redis Cluster of three masters that serve all slots.
type Cluster struct {
	// Nodes are the three masters, then their replicas, as they were at the start:
	// master i has the replicas 3+i, 6+i, and so on.
	Nodes []*Server
}

// A busy machine must not make a shared cluster elect new masters; a test that kills
// a node does not want to wait long.
const (
	sharedNodeTimeout = 30 * time.Second
	ownNodeTimeout    = 2 * time.Second
)

var sharedCluster = sync.OnceValues(func() (*Cluster, error) { return newCluster(0, sharedNodeTimeout) })

// SharedCluster is a cluster without replicas that all tests of the process share.
func SharedCluster(t testing.TB) *Cluster {
	t.Helper()
	c, err := sharedCluster()
	must(t, err)
	return c
}

// NewCluster is a cluster of the test's own, with so many replicas for each master,
// stopped when the test ends. A node that is silent for two seconds counts as failed.
func NewCluster(t testing.TB, replicas int) *Cluster {
	t.Helper()
	c, err := newCluster(replicas, ownNodeTimeout)
	must(t, err)
	t.Cleanup(c.discard)
	return c
}

func newCluster(replicas int, nodeTimeout time.Duration) (*Cluster, error) {
	c := &Cluster{}
	for range masters * (1 + replicas) {
		s, err := newServer([]string{
			"cluster-enabled yes",
			fmt.Sprintf("cluster-node-timeout %d", nodeTimeout.Milliseconds()),
			"cluster-replica-validity-factor 0", // a replica may always take over
		})
		if err != nil {
			c.discard()
			return nil, err
		}
		c.Nodes = append(c.Nodes, s)
	}
	if err := c.join(); err != nil {
		c.discard()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) discard() {
	for _, s := range c.Nodes {
		s.discard()
	}
}

// join makes a cluster of the nodes.
func (c *Cluster) join() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, s := range c.Nodes {
		err := s.with(func(r *redis.Client) error {
			if err := r.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
				return err
			}
			if i < masters {
				if err := r.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
					return err
				}
			}
			for _, other := range c.Nodes[:i] { // not the first alone: gossip takes its time
				if err := r.ClusterMeet(ctx, "127.0.0.1", fmt.Sprint(other.port)).Err(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("cluster node %s: %w", s.Addr, err)
		}
	}
	for i, s := range c.Nodes[masters:] {
		if err := s.replicate(c.Nodes[i%masters]); err != nil {
			return err
		}
	}
	return c.awaitReady()
}

// replicate makes s a replica of master, once gossip has told it of master.
func (s *Server) replicate(master *Server) error {
	id, err := master.nodeID()
	if err != nil {
		return err
	}
	return poll("replication of "+master.Addr, func(ctx context.Context) error {
		return s.with(func(r *redis.Client) error { return r.ClusterReplicate(ctx, id).Err() })
	})
}

// awaitReady waits until every node knows all the others and serves all slots.
func (c *Cluster) awaitReady() error {
	for _, s := range c.Nodes {
		err := poll("cluster state of "+s.Addr, func(ctx context.Context) error {
			return s.with(func(r *redis.Client) error { return s.ready(ctx, r, len(c.Nodes)) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) ready(ctx context.Context, r *redis.Client, nodes int) error {
	info, err := r.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	for _, line := range []string{"cluster_state:ok", "cluster_slots_ok:16384", fmt.Sprintf("cluster_known_nodes:%d", nodes)} {
		if !strings.Contains(info, line+"\r\n") {
			return fmt.Errorf("no %s in:\n%s", line, info)
		}
	}
	ranges, err := r.ClusterSlots(ctx).Result()
	if err != nil {
		return err
	}
	known := 0
	for _, slotRange := range ranges {
		known += len(slotRange.Nodes)
	}
	if known != nodes {
		return fmt.Errorf("%d of %d nodes serve slots", known, nodes)
	}
	return inStep(ctx)(r)
}

// inStep is an error for a replica that has yet to get its master's data.
func inStep(ctx context.Context) func(r *redis.Client) error {
	return func(r *redis.Client) error {
		replication, err := r.Info(ctx, "replication").Result()
		if err == nil && strings.Contains(replication, "master_link_status:down") {
			err = errors.New("replica is not in step")
		}
		return err
	}
}

// with calls f with a client of the server that lives for the call only.
func (s *Server) with(f func(r *redis.Client) error) error {
	o := s.Options()
	o.MaxRetries, o.DialerRetries = -1, 1
	r := redis.NewClient(o)
	defer r.Close() //nolint:errcheck // f has its replies
	return f(r)
}

func (s *Server) nodeID() (id string, err error) {
	err = s.with(func(r *redis.Client) error {
		id, err = r.ClusterMyID(context.Background()).Result()
		return err
	})
	return id, err
}

// Options are for a client of the cluster that the test wants to adjust. The client
// looks for new masters every second: by itself go-redis does so once a minute, and a
// master that was killed goes on being asked for as long.
func (c *Cluster) Options() *redis.ClusterOptions {
	o := &redis.ClusterOptions{
		DialTimeout:                time.Second,
		ReadTimeout:                5 * time.Second,
		ClusterStateReloadInterval: time.Second,
		MaintNotificationsConfig:   &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for _, s := range c.Nodes {
		o.Addrs = append(o.Addrs, s.Addr)
	}
	return o
}

// Client is a new client of the cluster, closed when the test ends.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	r := redis.NewClusterClient(c.Options())
	t.Cleanup(func() { _ = r.Close() })
	return r
}
