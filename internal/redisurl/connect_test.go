package redisurl_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/internal/redisurl"
)

const password = "s3cr3t"

func connect(t *testing.T, rawURL string) (redis.UniversalClient, redisurl.Topology) {
	t.Helper()
	c, topology, err := redisurl.Connect(t.Context(), rawURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c, topology
}

func requireConnectError(t *testing.T, rawURL, text string) {
	t.Helper()
	c, _, err := redisurl.Connect(t.Context(), rawURL)
	require.ErrorContains(t, err, text)
	require.NotContains(t, err.Error(), password)
	require.Nil(t, c)
}

// requireConnectRefused is for what is wrong with the URL, and not with the server.
func requireConnectRefused(t *testing.T, rawURL, text string) {
	t.Helper()
	c, _, err := redisurl.Connect(t.Context(), rawURL)
	require.ErrorIs(t, err, es.ErrInvalid)
	require.ErrorContains(t, err, text)
	require.Nil(t, c)
}

func TestConnectStandalone(t *testing.T) {
	t.Parallel()
	s := redistest.Standalone(t, "requirepass "+password)
	for _, parameters := range []string{"", "?protocol=2"} {
		c, topology := connect(t, "redis://:"+password+"@"+s.Addr+"/3"+parameters)
		require.Equal(t, redisurl.Standalone, topology)
		require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	}
	o := s.Options()
	o.Password, o.DB = password, 3
	direct := redis.NewClient(o)
	t.Cleanup(func() { _ = direct.Close() })
	require.Equal(t, "v", direct.Get(t.Context(), "k").Val(), "KEY-09: it is in database 3")

	requireConnectError(t, "redis://:not-"+password+"@"+s.Addr, "WRONGPASS")
	requireConnectError(t, "redis://"+s.Addr, "NOAUTH")
	requireConnectError(t, "redis://:"+password+"@"+s.Addr+"/99", "DB index is out of range")
}

func TestConnectNamesWhoDoesNotAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	requireConnectError(t, "redis://:"+password+"@"+l.Addr().String()+"?max_retries=-1", "connect to "+l.Addr().String())
}

// CLU-10: one address is enough to reach all of a Cluster, whatever the URL calls it.
func TestCLU10_ConnectToAClusterNodeReachesTheWholeCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.SharedCluster(t)
	for _, url := range []string{"redis://", "redis+cluster://"} {
		c, topology := connect(t, url+cluster.Nodes[1].Addr)
		require.Equal(t, redisurl.Cluster, topology)
		require.IsType(t, &redis.ClusterClient{}, c)
		for i := range 30 {
			require.NoError(t, c.Set(t.Context(), fmt.Sprintf("redisurl.%d", i), i, 0).Err())
		}
	}
}

// CLU-10 and KEY-09: what the Cluster cannot do is refused by name.
func TestCLU10_ConnectToAClusterNodeRefusesADatabaseNumber(t *testing.T) {
	t.Parallel()
	addr := redistest.SharedCluster(t).Nodes[0].Addr
	requireConnectRefused(t, "redis://"+addr+"/5", addr+" belongs to a Cluster, which has database 0 only, not 5")
}

func TestCLU10_AUserWhoMayNotAskStillReachesTheWholeCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t, 0)
	for _, s := range cluster.Nodes {
		require.NoError(t, s.Client(t).ACLSetUser(t.Context(), "app", "on", ">"+password, "~*", "+get", "+set", "+ping", "+cluster|slots").Err())
	}
	c, topology := connect(t, "redis://app:"+password+"@"+cluster.Nodes[0].Addr)
	require.Equal(t, redisurl.Cluster, topology)
	require.NoError(t, c.Set(t.Context(), "a", 1, 0).Err())
	require.NoError(t, c.Set(t.Context(), "b", 1, 0).Err())
	require.NoError(t, c.Set(t.Context(), "c", 1, 0).Err())
}

// A server without HELLO, as old proxies are, is used as the URL has it.
func TestServerThatDoesNotSayWhatItIsIsUnknown(t *testing.T) {
	t.Parallel()
	s := redistest.Standalone(t, `rename-command HELLO ""`)
	c, topology := connect(t, "redis://"+s.Addr)
	require.Equal(t, redisurl.Unknown, topology)
	require.NoError(t, c.Ping(t.Context()).Err())
}

func TestConnectToAClusterThatIsNone(t *testing.T) {
	t.Parallel()
	requireConnectError(t, "redis+cluster://"+redistest.Shared(t).Addr, "cluster support disabled")
}

func TestConnectThroughSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.SharedSentinel(t)
	hosts := strings.Join(s.SentinelAddrs, ",")
	c, topology := connect(t, "redis+sentinel://"+hosts+"/"+s.MasterName+"/2")
	require.Equal(t, redisurl.Sentinel, topology)
	require.NoError(t, c.Set(t.Context(), "redisurl.sentinel", "v", 0).Err())
	o := s.Master(t).Options()
	o.DB = 2
	direct := redis.NewClient(o)
	t.Cleanup(func() { _ = direct.Close() })
	require.Equal(t, "v", direct.Get(t.Context(), "redisurl.sentinel").Val(), "KEY-09: it is in database 2")

	requireConnectError(t, "redis+sentinel://"+hosts+"/other?max_retries=-1", "connect to "+hosts)
	requireConnectRefused(t, "redis://"+s.SentinelAddrs[0], "is a sentinel: use redis+sentinel://")
}
