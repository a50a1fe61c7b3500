package redisurl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Connect is [Open] and a first round trip, so that a wrong address, password or
// database number shows at once. It also says what the server is.
//
// Where a redis:// URL leads to a node of a Cluster, the client is one for the Cluster:
// one for a single node would find only what that node holds. A database number other
// than 0 is then refused, and so is a URL that leads to a sentinel.
func Connect(ctx context.Context, rawURL string) (redis.UniversalClient, Topology, error) {
	t, err := parse(rawURL)
	if err != nil {
		return nil, "", err
	}
	topology := t.kind
	if t.kind == Standalone {
		if topology, err = t.look(ctx); err != nil {
			return nil, "", err
		}
	}
	c, err := t.open()
	if err != nil {
		return nil, "", err
	}
	if err := c.Ping(ctx).Err(); err != nil {
		return nil, "", errors.Join(t.connectError(err), c.Close())
	}
	return c, topology, nil
}

// look asks the server what it is. HELLO is open to every user who may connect, which
// INFO is not; a proxy may not know it.
func (t *target) look(ctx context.Context) (Topology, error) {
	o, err := t.standalone()
	if err != nil {
		return "", err
	}
	o.DB = 0 // a Cluster would refuse any other one before it says that it is one
	c := redis.NewClient(o)
	defer c.Close() //nolint:errcheck // it has said what it had to
	hello, err := c.Do(ctx, "HELLO").Result()
	var reply redis.Error
	if err != nil && (!errors.As(err, &reply) || isAuthError(reply)) {
		return "", t.connectError(err)
	}
	switch mode(hello) {
	case "standalone":
		return Standalone, nil
	case "cluster":
		if t.db != 0 {
			return "", invalid("%s belongs to a Cluster, which has database 0 only, not %d", t.hosts[0], t.db)
		}
		t.kind = Cluster
		return Cluster, nil
	case "sentinel":
		return "", invalid("%s is a sentinel: use redis+sentinel://%s/<master>", t.hosts[0], t.hosts[0])
	}
	return Unknown, nil
}

// mode is the value beside "mode" in a reply to HELLO, of either protocol version.
func mode(hello any) string {
	switch hello := hello.(type) {
	case map[any]any:
		text, _ := hello["mode"].(string)
		return text
	case []any:
		for i := 0; i+1 < len(hello); i += 2 {
			if hello[i] == "mode" {
				text, _ := hello[i+1].(string)
				return text
			}
		}
	}
	return ""
}

func isAuthError(reply redis.Error) bool {
	word, _, _ := strings.Cut(reply.Error(), " ")
	return word == "NOAUTH" || word == "WRONGPASS" || strings.HasPrefix(reply.Error(), "ERR AUTH")
}

func (t *target) connectError(err error) error {
	return fmt.Errorf("connect to %s: %w", strings.Join(t.hosts, ","), err)
}
