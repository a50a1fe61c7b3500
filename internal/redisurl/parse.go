package redisurl

import (
	"cmp"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Topology is what stands behind a URL.
type Topology string

// The topologies.
const (
	Standalone Topology = "standalone"
	Cluster    Topology = "cluster"
	Sentinel   Topology = "sentinel"
	// Unknown is a server that does not say what it is, and is used as the URL has it.
	Unknown Topology = "unknown"
)

// target is what a URL says.
type target struct {
	kind  Topology
	tls   bool
	hosts []string // host:port

	username, password                 string
	sentinelUsername, sentinelPassword string

	master     string
	db         int
	skipVerify bool
	// parameters are those that go-redis is to read.
	parameters url.Values
}

var schemes = map[string]target{
	"redis":           {kind: Standalone},
	"rediss":          {kind: Standalone, tls: true},
	"redis+cluster":   {kind: Cluster},
	"rediss+cluster":  {kind: Cluster, tls: true},
	"redis+sentinel":  {kind: Sentinel},
	"rediss+sentinel": {kind: Sentinel, tls: true},
}

const encode = "in a user or password, / ? # and %% must be written as percent and two digits"

// parse does by hand what net/url cannot: several hosts, and errors without passwords.
func parse(rawURL string) (*target, error) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(rawURL), "://")
	t, ok := schemes[strings.ToLower(scheme)]
	if !ok {
		return nil, invalid("it must begin with redis://, redis+cluster://, redis+sentinel://, or the same with rediss")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if strings.ContainsAny(tail, "@#") {
		return nil, invalid("there is a # or an @ behind the host: " + encode)
	}
	path, query, _ := strings.Cut(tail, "?")
	hosts := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		hosts = authority[i+1:]
		if err := t.readUser(authority[:i]); err != nil {
			return nil, err
		}
	}
	for _, step := range []func() error{
		func() error { return t.readHosts(hosts) },
		func() error { return t.readParameters(query) },
		func() error { return t.readPath(path) },
		t.credentials,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &t, nil
}

func (t *target) readUser(text string) error {
	user, password, _ := strings.Cut(text, ":")
	for _, part := range []struct {
		text string
		to   *string
	}{{user, &t.username}, {password, &t.password}} {
		plain, err := url.PathUnescape(part.text)
		if err != nil {
			return invalid(encode)
		}
		*part.to = plain
	}
	return nil
}

func (t *target) readHosts(text string) error {
	usual := "6379"
	if t.kind == Sentinel {
		usual = "26379"
	}
	for item := range strings.SplitSeq(text, ",") {
		u, err := url.Parse("redis://" + item)
		if err != nil || u.Hostname() == "" {
			return invalid("%q is no host:port", item)
		}
		t.hosts = append(t.hosts, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), usual)))
	}
	if len(t.hosts) > 1 && t.kind == Standalone {
		return invalid("several hosts: they need redis+cluster:// or redis+sentinel://")
	}
	return nil
}

// readPath reads [/master][/db].
func (t *target) readPath(path string) error {
	var parts []string
	if trimmed := strings.Trim(path, "/"); trimmed != "" {
		parts = strings.Split(trimmed, "/")
	}
	if t.kind == Sentinel {
		if len(parts) == 0 {
			return invalid("it names no master: redis+sentinel://host:port/master")
		}
		master, err := url.PathUnescape(parts[0])
		if err != nil {
			return invalid("master %q", parts[0])
		}
		t.master, parts = master, parts[1:]
	}
	switch {
	case len(parts) > 1:
		return invalid("path %q", path)
	case len(parts) == 0:
		return nil
	case t.parameters.Has("db") && t.parameters.Get("db") != parts[0]:
		return invalid("database %q in the path, and %q in db", parts[0], t.parameters.Get("db"))
	}
	return t.readDatabase(parts[0])
}

func (t *target) readDatabase(text string) error {
	db, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return invalid("database %q is no number", text)
	}
	t.db = int(db)
	return nil
}
