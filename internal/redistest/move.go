package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Move stops all nodes, and starts them with their data on other ports, as a cluster
// comes back whose machines were all replaced. Of the old ports none answers. A test
// that reads the nodes' Addr does so before or after.
func (c *Cluster) Move(t testing.TB) {
	t.Helper()
	for _, s := range c.Nodes {
		must(t, s.save())
	}
	for _, s := range c.Nodes {
		must(t, s.startElsewhere())
	}
	for _, s := range c.Nodes { // each knows only where the others were
		must(t, s.with(func(r *redis.Client) error {
			for _, other := range c.Nodes {
				if err := r.ClusterMeet(t.Context(), "127.0.0.1", fmt.Sprint(other.port)).Err(); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	must(t, c.awaitReady())
}

// save ends the server with all that it has acknowledged on disk.
func (s *Server) save() error {
	err := s.with(func(r *redis.Client) error { return r.ShutdownSave(context.Background()).Err() })
	if err != nil {
		return err
	}
	return poll("end of "+s.Addr, func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running() {
			return errors.New("it runs")
		}
		return nil
	})
}

func (s *Server) startElsewhere() error {
	for attempt := 0; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.port, s.Addr = port, address(port)
		s.mu.Unlock()
		if err := s.writeConfig(); err != nil {
			return err
		}
		if err = s.start(); err == nil || !strings.Contains(err.Error(), "Address already in use") || attempt == 10 {
			return err
		}
	}
}

// NamedOptions are for a client that was given names, each of which leads to one node
// wherever that is now. What the nodes themselves call their addresses leads there too.
func (c *Cluster) NamedOptions() *redis.ClusterOptions {
	o := c.Options()
	o.Addrs = nil
	named := map[string]*Server{}
	for i, s := range c.Nodes {
		name := fmt.Sprintf("node-%d:6379", i)
		o.Addrs = append(o.Addrs, name)
		named[name] = s
	}
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		to := net.JoinHostPort("127.0.0.1", port) // the client puts a name before a node's port
		if s := named[addr]; s != nil {
			to = s.now()
		}
		d := net.Dialer{Timeout: o.DialTimeout}
		return d.DialContext(ctx, network, to)
	}
	return o
}

func (s *Server) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Addr
}
