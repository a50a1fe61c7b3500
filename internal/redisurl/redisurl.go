// Package redisurl makes a Redis client from a URL.
//
//	redis://[user[:password]@]host[:port][/db][?parameters]
//	redis+cluster://[user[:password]@]host[:port],host[:port]…[?parameters]
//	redis+sentinel://[user[:password]@]host[:port],host[:port]…/master[/db][?parameters]
//
// With rediss, rediss+cluster and rediss+sentinel the connections are TLS; the server's
// name is verified against the system's certificates, to which SSL_CERT_FILE adds on
// Linux, unless skip_verify=true. User and password are those of the Redis servers;
// sentinels that ask for one get sentinel_username and sentinel_password. What the URL
// leaves out is taken from HEADWATER_REDIS_USERNAME and HEADWATER_REDIS_PASSWORD. The
// database number may also be given as db=1. The other parameters are those of
// go-redis, such as dial_timeout=2s, read_timeout, pool_size, client_name.
//
// What a URL says is done or refused, never left out. Refusals are [es.ErrInvalid],
// name what they refuse, and hold no part of the user or the password.
package redisurl

import (
	"crypto/tls"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/headwater-go/headwater/es"
)

// The environment variables that stand in for what the URL leaves out.
const (
	usernameVariable = "HEADWATER_REDIS_USERNAME"
	passwordVariable = "HEADWATER_REDIS_PASSWORD"
)

// routingRefresh is how often a cluster client asks who serves which slots. go-redis
// asks once a minute, and after MOVED; a dead master sends no MOVED.
const routingRefresh = 5 * time.Second

// Open is a client for the URL. It connects to nothing yet; [Connect] does.
func Open(rawURL string) (redis.UniversalClient, error) {
	t, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	return t.open()
}

func (t *target) open() (redis.UniversalClient, error) {
	switch t.kind {
	case Cluster:
		return t.openCluster()
	case Sentinel:
		return t.openSentinel()
	default:
		o, err := t.standalone()
		if err != nil {
			return nil, err
		}
		return redis.NewClient(o), nil
	}
}

// library is the URL that go-redis's own parsers get. It holds no user and no password.
func (t *target) library() string {
	return "redis://" + t.hosts[0] + "?" + t.parameters.Encode()
}

// libraryError is what go-redis's parsers found wrong with a parameter.
func libraryError(err error) error {
	return invalid("%s", strings.TrimPrefix(err.Error(), "redis: "))
}

func (t *target) standalone() (*redis.Options, error) {
	o, err := redis.ParseURL(t.library())
	if err != nil {
		return nil, libraryError(err)
	}
	o.Username, o.Password, o.DB = t.username, t.password, t.db
	o.TLSConfig, o.ContextTimeoutEnabled = t.tlsConfig(), true
	o.MaintNotificationsConfig = noNotices()
	return o, nil
}

func (t *target) openCluster() (redis.UniversalClient, error) {
	if t.db != 0 {
		return nil, invalid("a Cluster has database 0 only, not %d", t.db)
	}
	o, err := redis.ParseClusterURL(t.library())
	if err != nil {
		return nil, libraryError(err)
	}
	o.Addrs = t.hosts
	o.Username, o.Password = t.username, t.password
	o.TLSConfig, o.ContextTimeoutEnabled = t.tlsConfig(), true
	o.ClusterStateReloadInterval = routingRefresh
	o.MaintNotificationsConfig = noNotices()
	return redis.NewClusterClient(o), nil
}

func (t *target) openSentinel() (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(t.library())
	if err != nil {
		return nil, libraryError(err)
	}
	o.SentinelAddrs, o.MasterName, o.DB = t.hosts, t.master, t.db
	o.Username, o.Password = t.username, t.password
	o.SentinelUsername, o.SentinelPassword = t.sentinelUsername, t.sentinelPassword
	o.TLSConfig, o.ContextTimeoutEnabled = t.tlsConfig(), true
	return redis.NewFailoverClient(o), nil
}

// noNotices turns off what only managed servers send. Left on, go-redis looks the host
// up while it makes a client, and asks on each connection.
func noNotices() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// tlsConfig names no server: each connection then verifies the host that it dials, and
// not all of them the first one.
func (t *target) tlsConfig() *tls.Config {
	if !t.tls {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.skipVerify, //nolint:gosec // the user asked for it by name
	}
}

// credentials completes user and password from the environment.
func (t *target) credentials() error {
	if t.username == "" {
		t.username = os.Getenv(usernameVariable)
	}
	if t.password == "" {
		t.password = os.Getenv(passwordVariable)
	}
	if t.username != "" && t.password == "" {
		return invalid("a user without a password")
	}
	if t.sentinelUsername != "" && t.sentinelPassword == "" {
		return invalid("sentinel_username without sentinel_password")
	}
	return nil
}

func invalid(format string, args ...any) error { return es.Invalid("redis URL: "+format, args...) }
