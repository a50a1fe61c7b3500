package redistest

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

// ProxyCluster is a client of the cluster that reaches Nodes[i] through proxy i, and
// nothing past them. The client is closed when the test ends.
func ProxyCluster(t testing.TB, c *Cluster) (*redis.ClusterClient, []*Proxy) {
	t.Helper()
	proxies := make([]*Proxy, len(c.Nodes))
	before := map[string]string{}
	for i, s := range c.Nodes {
		proxies[i] = NewProxy(t, s.Addr)
		before[s.Addr] = proxies[i].Addr
	}
	o := c.Options()
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		proxy, ok := before[addr]
		if !ok {
			return nil, &net.AddrError{Err: "no node of the cluster", Addr: addr}
		}
		d := net.Dialer{Timeout: o.DialTimeout}
		return d.DialContext(ctx, network, proxy)
	}
	r := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = r.Close() })
	return r, proxies
}
