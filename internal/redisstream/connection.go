package redisstream

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/headwater-go/headwater/es"
)

// masters is a client that asks masters only: a replica that is behind would tell of a
// group or an entry that it is not there. The result of a client of this kind is itself.
func masters(rdb redis.UniversalClient) (client redis.UniversalClient, closeIt func()) {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return rdb, func() {}
	}
	o := *cluster.Options()
	if !o.ReadOnly && !o.RouteByLatency && !o.RouteRandomly {
		return rdb, func() {}
	}
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	client = redis.NewClusterClient(&o)
	return client, func() { _ = client.Close() }
}

// longBlock is how long a read waits that can be ended early. The client waits for ten
// seconds more until it takes a connection for broken.
const longBlock = 2 * time.Second

// reading is where blocked reads run: on connections of their own, so that they take
// none from anything else.
type reading struct {
	rdb   redis.UniversalClient
	block time.Duration
}

func readingClient(rdb redis.UniversalClient, topics int) (*reading, error) {
	r := &reading{block: 500 * time.Millisecond}
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		o := *c.Options()
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.MaxRetries = topics+1, 0, 0, 0, -1
		o.MaintNotificationsConfig = noNotifications()
		r.rdb = redis.NewClusterClient(&o)
	case *redis.Client:
		// A client of Sentinel has a dialer that asks for the master, which its copy has
		// too. The copy does not hear of a failover: it finds out when its read ends.
		o := *c.Options()
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.MaxRetries = topics+1, 0, 0, 0, -1
		o.MaintNotificationsConfig = noNotifications()
		r.rdb = redis.NewClient(&o)
	default:
		return nil, es.Invalid("a subscription reads through a *redis.Client or a *redis.ClusterClient, not a %T", rdb)
	}
	return r, nil
}

// noNotifications keeps the copy from reading the original's configuration, which its
// first connection writes to. A read that is cut short is begun again anyhow.
func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func (r *reading) close() {
	_ = r.rdb.Close()
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

// fail drops a connection that reads fail on. The topic may have moved to another node.
func (c *connection) fail(ctx context.Context) {
	c.drop()
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
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

// read is what there is to read. Where it may wait it does so for a while, or until ctx
// is done. The reply of a read that has begun is always taken: what it names is ours.
func (c *connection) read(ctx context.Context, t *topic, count int, wait bool) ([]redis.XStream, error) {
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	args := &redis.XReadGroupArgs{
		Group: t.Group, Consumer: t.Consumer, Streams: []string{t.name, t.retry, ">", ">"}, Count: int64(count), Block: -1,
	}
	if wait {
		args.Block = c.block
		if c.id != 0 {
			args.Block = longBlock
			defer c.unblockAtEnd(ctx)()
		}
	}
	return c.conn.XReadGroup(context.WithoutCancel(ctx), args).Result()
}

// unblockAtEnd ends a blocked read as soon as ctx is done. The result is to be called
// after the read.
func (c *connection) unblockAtEnd(ctx context.Context) func() {
	id, read, ended := c.id, make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		c.unblock(context.WithoutCancel(ctx), id, read)
	})
	return func() {
		close(read)
		if !stop() {
			<-ended
		}
	}
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
