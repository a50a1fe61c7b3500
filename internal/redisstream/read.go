package redisstream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/recovery"
)

// maxRead limits the entries of one reply.
const maxRead = 100

// read reads the topic, and what is replayed to the group, until ctx is done.
func (t *topic) read(ctx context.Context) {
	t.begin(ctx)
	c := &connection{reading: t.reads, topic: t.name}
	defer c.drop()
	wait := time.Duration(0)
	for {
		n := t.lanes.free(ctx)
		if n == 0 {
			return
		}
		streams, err := c.read(ctx, t, min(n, maxRead))
		for _, s := range streams {
			for _, m := range s.Messages {
				if s.Stream == t.name {
					t.last = m.ID
				}
				e, fields := &entry{stream: s.Stream, id: m.ID}, fieldsOf(m.Values)
				if s.Stream != t.name {
					fields, _, _, e.bad = recovery.ReadRetry(fields)
				}
				t.take(e, fields)
			}
		}
		if err == nil || errors.Is(err, redis.Nil) {
			wait = 0
			continue
		}
		if ctx.Err() != nil {
			return
		}
		c.drop()
		t.heal(ctx, "reading failed; trying on", err)
		wait = min(2*wait+100*time.Millisecond, 5*time.Second)
		if !pause(ctx, wait/2+jitter(wait/2+1)) {
			return
		}
	}
}

func fieldsOf(values map[string]any) recovery.Fields {
	f := make(recovery.Fields, 0, 2*len(values))
	for name, value := range values {
		text, _ := value.(string)
		f = append(f, name, text)
	}
	return f
}

// begin writes the lease before the first read, so that nobody claims what is read.
func (t *topic) begin(ctx context.Context) {
	for ctx.Err() == nil {
		err := t.group.Renew(ctx)
		if err == nil || !pause(ctx, 200*time.Millisecond) {
			return
		}
		t.log.Warn(ctx, "lease could not be taken; trying on", "topic", t.name, "group", t.Group, "reason", err)
	}
}

// heal makes a group that is gone anew, where this process had got to, and says what
// happened, at most once in ten seconds for each cause.
func (t *topic) heal(ctx context.Context, what string, err error) {
	t.log.Warn(ctx, what, "topic", t.name, "group", t.Group, "reason", err)
	switch redisrun.Word(err) {
	case "NOGROUP", "UNBLOCKED":
	default:
		return
	}
	start := t.Start
	if start == "" || t.last != "" {
		start = es.FromBeginning
	}
	if t.last != "" && t.intact(ctx) {
		start = es.Start(t.last)
	}
	if err := prepare(ctx, t.rdb, t.name, t.Group, start); err != nil {
		t.log.Warn(ctx, "group could not be made anew; trying on", "topic", t.name, "group", t.Group, "reason", err)
		return
	}
	t.log.Warn(ctx, "group was gone and is made anew", "topic", t.name, "group", t.Group, "from", string(start))
}

// intact reports that the stream is still the one that was read: one that was deleted
// and begun again may count from anywhere.
func (t *topic) intact(ctx context.Context) bool {
	info, err := t.rdb.XInfoStream(ctx, t.name).Result()
	return err == nil && !before(info.LastGeneratedID, t.last)
}

// before compares two ids of entries: <milliseconds>-<number>.
func before(a, b string) bool {
	ams, an, _ := strings.Cut(a, "-")
	bms, bn, _ := strings.Cut(b, "-")
	if ams != bms {
		return less(ams, bms)
	}
	return less(an, bn)
}

// less compares decimal numbers without leading zeros.
func less(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// reading is where blocked reads run: on connections of their own, so that they take
// none from anything else.
type reading struct {
	rdb   redis.UniversalClient
	own   bool
	block time.Duration
}

func readingClient(rdb redis.UniversalClient, topics int) (*reading, error) {
	r := &reading{rdb: rdb, block: 500 * time.Millisecond}
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		o := *c.Options()
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = max(topics, 2), 0, 0, 0
		o.MaxRetries, o.ReadOnly, o.RouteByLatency, o.RouteRandomly = -1, false, false, false
		r.rdb, r.own = redis.NewClusterClient(&o), true
	case *redis.Client:
		o := *c.Options()
		if o.Addr == "FailoverClient" {
			// A copy would not hear of a failover: its connections must be in the pool
			// that Sentinel's hook clears.
			if o.PoolSize <= topics {
				return nil, es.Invalid("the client's pool has %d connections, of which %d topics would block each its own; it needs more", o.PoolSize, topics)
			}
			break
		}
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.MaxRetries = topics+1, 0, 0, 0, -1
		r.rdb, r.own = redis.NewClient(&o), true
	default:
		return nil, es.Invalid("a subscription reads through a *redis.Client or a *redis.ClusterClient, not a %T", rdb)
	}
	return r, nil
}

func (r *reading) close() {
	if r.own {
		_ = r.rdb.Close()
	}
}

// connection is the one that a topic's reads block on.
type connection struct {
	*reading
	topic string
	conn  *redis.Conn
	id    int64 // for CLIENT UNBLOCK; 0 where that is not allowed
}

func (c *connection) drop() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func (c *connection) open(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	node, err := c.node(ctx)
	if err != nil {
		return err
	}
	c.conn, c.id = node.Conn(), 0
	if id, err := c.conn.ClientID(ctx).Result(); err == nil && node.ClientUnblock(ctx, 0).Err() == nil {
		c.id = id
	}
	return nil
}

// read blocks until there is something to read, for a while, or until ctx is done.
func (c *connection) read(ctx context.Context, t *topic, count int) ([]redis.XStream, error) {
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	block := c.block
	var unblocking sync.WaitGroup
	if c.id != 0 {
		block = 5 * time.Second
		id := c.id
		read := make(chan struct{})
		unblocking.Add(1)
		stop := context.AfterFunc(ctx, func() {
			defer unblocking.Done()
			c.unblock(context.WithoutCancel(ctx), id, read)
		})
		defer func() {
			close(read)
			if stop() {
				unblocking.Done()
			}
			unblocking.Wait()
		}()
	}
	// The reply of a read that has begun is always taken: what it names is ours.
	return c.conn.XReadGroup(context.WithoutCancel(ctx), &redis.XReadGroupArgs{
		Group: t.Group, Consumer: t.Consumer, Streams: []string{t.name, t.retry, ">", ">"}, Count: int64(count), Block: block,
	}).Result()
}

// unblock ends the read of connection id, whether it has reached the server yet or not.
func (c *connection) unblock(ctx context.Context, id int64, read <-chan struct{}) {
	for {
		short, cancel := context.WithTimeout(ctx, time.Second)
		if node, err := c.node(short); err == nil {
			_ = node.ClientUnblock(short, id).Err()
		}
		cancel()
		select {
		case <-read:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *connection) node(ctx context.Context) (*redis.Client, error) {
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, c.topic)
	}
	node, ok := c.rdb.(*redis.Client)
	if !ok {
		return nil, es.Invalid("a subscription cannot read through a %T", c.rdb)
	}
	return node, nil
}
