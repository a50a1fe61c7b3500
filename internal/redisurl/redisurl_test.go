package redisurl_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisurl"
)

func open[C redis.UniversalClient](t *testing.T, rawURL string) C {
	t.Helper()
	c, err := redisurl.Open(rawURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.IsType(t, *new(C), c)
	return c.(C)
}

func TestOpenStandalone(t *testing.T) {
	t.Parallel()
	o := open[*redis.Client](t, "redis://app:p%40s%2Fs:w@cache.example:7000/5?dial_timeout=2s&client_name=x").Options()
	require.Equal(t, "cache.example:7000", o.Addr)
	require.Equal(t, "app", o.Username)
	require.Equal(t, "p@s/s:w", o.Password)
	require.Equal(t, 5, o.DB)
	require.Equal(t, 2*time.Second, o.DialTimeout)
	require.Equal(t, "x", o.ClientName)
	require.Nil(t, o.TLSConfig)
	require.Equal(t, "[::1]:6379", open[*redis.Client](t, "redis://[::1]").Options().Addr)
}

func TestOpenCluster(t *testing.T) {
	t.Parallel()
	o := open[*redis.ClusterClient](t, "redis+cluster://app:secret@a:7000,b,[::1]:7002/0?read_timeout=7s").Options()
	require.Equal(t, []string{"a:7000", "b:6379", "[::1]:7002"}, o.Addrs)
	require.Equal(t, "app", o.Username)
	require.Equal(t, "secret", o.Password)
	require.Equal(t, 7*time.Second, o.ReadTimeout)
	require.Equal(t, 5*time.Second, o.ClusterStateReloadInterval, "a dead master must not be asked for a minute")
}

func TestOpenWithTLSVerifiesTheHostThatIsDialed(t *testing.T) {
	t.Parallel()
	for _, config := range []*tls.Config{
		open[*redis.Client](t, "rediss://a").Options().TLSConfig,
		open[*redis.ClusterClient](t, "rediss+cluster://a,b").Options().TLSConfig,
		open[*redis.Client](t, "rediss+sentinel://a,b/main").Options().TLSConfig,
	} {
		require.NotNil(t, config)
		require.Empty(t, config.ServerName)
		require.False(t, config.InsecureSkipVerify)
	}
	require.True(t, open[*redis.ClusterClient](t, "rediss+cluster://a,b?skip_verify=true").Options().TLSConfig.InsecureSkipVerify)
}

// KEY-09: a database number is honoured or refused, never silently 0.
func TestKEY09_DatabaseNumberIsHonouredOrRefused(t *testing.T) {
	t.Parallel()
	for url, db := range map[string]int{
		"redis://a":                        0,
		"redis://a/5":                      5,
		"redis://a?db=5":                   5,
		"redis://a/5?db=5":                 5,
		"redis+sentinel://a,b/main/5":      5,
		"redis+sentinel://a,b/main?db=5":   5,
		"redis+sentinel://a,b/main/5?db=5": 5,
	} {
		require.Equal(t, db, open[*redis.Client](t, url).Options().DB, url)
	}
	for url, text := range map[string]string{
		"redis+cluster://a,b/5":            "a Cluster has database 0 only, not 5",
		"redis+cluster://a?db=5":           "a Cluster has database 0 only, not 5",
		"redis://a/5?db=6":                 `database "5" in the path, and "6" in db`,
		"redis://a/-1":                     `database "-1" is no number`,
		"redis://a?db=-1":                  `database "-1" is no number`,
		"redis://a/orders":                 `database "orders" is no number`,
		"redis+sentinel://a/main/x":        `database "x" is no number`,
		"redis+sentinel://a/main/1/2":      `path "/main/1/2"`,
		"redis://a/99999999999999999999/":  "is no number",
		"redis+sentinel://a/main/1?db=2":   `database "1" in the path, and "2" in db`,
		"redis+sentinel://a,b/main?db=two": `database "two" is no number`,
	} {
		requireRefused(t, url, text)
	}
}

func TestOpenRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for url, text := range map[string]string{
		"":                                         "must begin with redis://",
		"localhost:6379":                           "must begin with redis://",
		"http://a":                                 "must begin with redis://",
		"redis://":                                 `"" is no host:port`,
		"redis://:6379":                            `":6379" is no host:port`,
		"redis://a:port":                           `"a:port" is no host:port`,
		"redis://a,b":                              "several hosts",
		"redis+cluster://a,,b":                     `"" is no host:port`,
		"redis://a?pool=5":                         "unexpected option: pool",
		"redis+cluster://a?pool=5":                 "unexpected option: pool",
		"redis+sentinel://a/main?pool=5":           "unexpected option: pool",
		"redis://a?pool_size=many":                 "pool_size",
		"redis://a?pool_size=1&pool_size=2":        "pool_size must have one value",
		"redis://a?db=":                            "db must have one value",
		"redis://a?client_name=%zz":                "not percent-encoded",
		"redis://a#fragment":                       "there is a #",
		"redis://a?skip_verify=true":               "needs rediss",
		"rediss://a?skip_verify=yes":               "true or false",
		"redis+cluster://a?addr=b:1":               "after a comma",
		"redis+sentinel://a":                       "names no master",
		"redis+sentinel://a/?master_name=m":        "the master's name is the path",
		"redis+sentinel://a/m?password=p":          "stands before the host",
		"redis+cluster://a?read_only=true":         "from masters only",
		"redis+sentinel://a/m?replica_only=1":      "from masters only",
		"redis://app@a":                            "a user without a password",
		"redis+sentinel://a/m?sentinel_username=x": "without sentinel_password",
		"redis://a?sentinel_password=x":            "unexpected option: sentinel_password",
	} {
		requireRefused(t, url, text)
	}
}

func requireRefused(t *testing.T, url, text string) {
	t.Helper()
	c, err := redisurl.Open(url)
	require.ErrorIs(t, err, es.ErrInvalid, url)
	require.ErrorContains(t, err, text, url)
	require.Nil(t, c)
}

func TestPasswordComesFromTheEnvironmentWhereTheURLHasNone(t *testing.T) {
	t.Setenv("HEADWATER_REDIS_USERNAME", "app")
	t.Setenv("HEADWATER_REDIS_PASSWORD", "from-env")
	o := open[*redis.Client](t, "redis://a").Options()
	require.Equal(t, "app", o.Username)
	require.Equal(t, "from-env", o.Password)
	o = open[*redis.Client](t, "redis://other:from-url@a").Options()
	require.Equal(t, "other", o.Username)
	require.Equal(t, "from-url", o.Password)
	cluster := open[*redis.ClusterClient](t, "redis+cluster://other@a").Options()
	require.Equal(t, "other", cluster.Username)
	require.Equal(t, "from-env", cluster.Password)
}

func FuzzErrorsHoldNoPassword(f *testing.F) {
	for _, around := range [][2]string{{"", ""}, {"/", ""}, {"", "/1"}, {"?", ""}, {"#", ""}, {"12/", ""}, {"12?pool_size=", ""}, {"%zz", "\n"}, {"@", ":"}, {"12?", "=1"}} {
		for _, rest := range []string{"a:port", "a/5?pool=1", "a,b", "a/x?db=y", "?%zz"} {
			f.Add(around[0], around[1], rest)
		}
	}
	const secret = "s3cr3t"
	f.Fuzz(func(t *testing.T, before, after, rest string) {
		if strings.Contains(rest, secret) {
			return
		}
		for _, scheme := range []string{"redis://", "rediss+cluster://", "redis+sentinel://"} {
			c, err := redisurl.Open(scheme + "user:" + before + secret + after + "@" + rest)
			if err != nil {
				require.NotContains(t, err.Error(), secret)
				continue
			}
			require.NoError(t, c.Close())
		}
	})
}
