package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// place is what a client leads to: one logical database, or all masters of a cluster.
type place struct {
	Mode     string `json:"mode"` // standalone, sentinel or cluster
	Version  string `json:"version"`
	Database int    `json:"database"`
}

// NodeError says which server kept a step from its end.
type NodeError struct {
	Addr string
	Err  error
}

// Error is "server 10.0.0.3:6379: …".
func (e *NodeError) Error() string { return "server " + e.Addr + ": " + e.Err.Error() }

// Unwrap gives [errors.Is] the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// server is a client with the patience of a step.
type server struct {
	rdb  redis.UniversalClient
	pace Pace
}

// look says what the client leads to. A client that hides the masters of a cluster, or
// reads from replicas, would miss keys and is an [es.ErrInvalid].
func (s server) look(ctx context.Context) (place, error) {
	p := place{Mode: "standalone"}
	switch c := s.rdb.(type) {
	case *redis.ClusterClient:
		p.Mode = "cluster"
		if c.Options().ReadOnly {
			return p, es.Invalid("the client reads from replicas, which may lack keys")
		}
	case *redis.Client:
		p.Database = c.Options().DB
	default:
		return p, es.Invalid("a %T does not lead to the keys of every master; use a *redis.Client or a *redis.ClusterClient", s.rdb)
	}
	info, err := s.info(ctx, s.rdb)
	if err != nil {
		return p, s.blame(ctx, err)
	}
	p.Version = cmp.Or(info["valkey_version"], info["redis_version"])
	if info["cluster_enabled"] == "1" && p.Mode != "cluster" {
		return p, es.Invalid("the server is part of a cluster, and the client is no cluster client")
	}
	return p, nil
}

// info is INFO's fields. Every section is asked for, since 6.2 takes one name only.
func (s server) info(ctx context.Context, rdb redis.Cmdable) (map[string]string, error) {
	text, err := redisrun.Do(ctx, s.pace.Patience, func() (string, error) { return rdb.Info(ctx).Result() })
	fields := map[string]string{}
	for l := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(l), ":"); ok {
			fields[name] = value
		}
	}
	return fields, err
}

// node is a master.
type node struct {
	addr string
	rdb  *redis.Client
	// run changes when the process does, and cursors of SCAN mean nothing to the next one.
	run string
	// slots is what the node says of itself: its id, its epoch and its slots, with those
	// that are on their way. "" outside a cluster.
	slots  string
	serves []string
}

// nodes are all masters, in a cluster whose slots are all served and none is moving.
func (s server) nodes(ctx context.Context) ([]node, error) {
	c, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		c := s.rdb.(*redis.Client) //nolint:forcetypeassert // look refuses all others
		n := node{addr: c.Options().Addr, rdb: c}
		info, err := s.info(ctx, c)
		n.run = info["run_id"]
		return []node{n}, s.blame(ctx, err)
	}
	var last error
	for deadline := newDeadline(s.pace.settle()); ; {
		nodes, err := s.masters(ctx, c)
		if err == nil {
			if err = settled(nodes); err == nil {
				return nodes, nil
			}
		}
		last = s.blame(ctx, err)
		if ctx.Err() != nil || deadline.over() || !errors.Is(err, errMoving) {
			return nil, last
		}
		c.ReloadState(ctx)
		if err := pause(ctx, settlePause); err != nil {
			return nil, errors.Join(err, last)
		}
	}
}

func (s server) masters(ctx context.Context, c *redis.ClusterClient) ([]node, error) {
	var mu sync.Mutex
	var nodes []node
	err := c.ForEachMaster(ctx, func(ctx context.Context, rdb *redis.Client) error {
		n := node{addr: rdb.Options().Addr, rdb: rdb}
		info, err := s.info(ctx, rdb)
		if err != nil {
			return &NodeError{n.addr, err}
		}
		n.run = info["run_id"]
		text, err := redisrun.Do(ctx, s.pace.Patience, func() (string, error) { return rdb.ClusterNodes(ctx).Result() })
		if err != nil {
			return &NodeError{n.addr, err}
		}
		n.myself(text)
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, n)
		return nil
	})
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.addr, b.addr) })
	return nodes, err
}

// myself reads the node's own line: id, address, flags, master, ping, pong, epoch, link
// state and slots.
func (n *node) myself(text string) {
	for l := range strings.Lines(text) {
		f := strings.Fields(l)
		if len(f) >= 8 && strings.Contains(f[2], "myself") {
			n.serves = f[8:]
			n.slots = strings.Join(append([]string{f[0], f[6]}, f[8:]...), " ")
		}
	}
}

const slots = 16384

// errMoving: not every slot has exactly one master that says so.
var errMoving = fmt.Errorf("%w: slots of the cluster are moving or nobody serves them", es.ErrUnavailable)

// settled reports why the nodes do not show the whole cluster.
func settled(nodes []node) error {
	var served [slots]bool
	for _, n := range nodes {
		for _, r := range n.serves {
			if strings.HasPrefix(r, "[") {
				return &NodeError{n.addr, fmt.Errorf("%w: %s", errMoving, r)}
			}
			first, last, ok := strings.Cut(r, "-")
			if !ok {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil || from < 0 || to >= slots {
				return &NodeError{n.addr, es.Corrupt("CLUSTER NODES has slots %q", r)}
			}
			for slot := from; slot <= to; slot++ {
				served[slot] = true
			}
		}
	}
	if i := slices.Index(served[:], false); i >= 0 {
		return fmt.Errorf("%w: slot %d", errMoving, i)
	}
	return nil
}

// same reports whether nothing moved and no process ended between two looks.
func same(before, after []node) bool {
	return slices.EqualFunc(before, after, func(a, b node) bool { return a.addr == b.addr && a.run == b.run && a.slots == b.slots })
}

// blame gives err the name of the server that is to blame for it, where none is named
// yet: the first master that does not answer.
func (s server) blame(ctx context.Context, err error) error {
	var named *NodeError
	if err == nil || errors.As(err, &named) || ctx.Err() != nil {
		return err
	}
	if c, ok := s.rdb.(*redis.Client); ok {
		return &NodeError{c.Options().Addr, err}
	}
	c, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		return err
	}
	if addr := down(ctx, c); addr != "" {
		return &NodeError{addr, err}
	}
	return err
}

// down is the address of a master that the others have given up, or that does not answer.
func down(ctx context.Context, c *redis.ClusterClient) string {
	var mu sync.Mutex
	var found string
	_ = c.ForEachShard(ctx, func(ctx context.Context, rdb *redis.Client) error {
		text, err := rdb.ClusterNodes(ctx).Result()
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			found = rdb.Options().Addr
			return nil
		}
		for l := range strings.Lines(text) {
			f := strings.Fields(l)
			if len(f) > 8 && strings.Contains(f[2], "master") && strings.Contains(f[2], "fail") && found == "" {
				found, _, _ = strings.Cut(f[1], "@")
			}
		}
		return nil
	})
	return found
}
