package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisurl"
)

// connect is the client of the server that the operator named. It has had one answer.
func (a *app) connect(ctx context.Context) (redis.UniversalClient, error) {
	if a.rdb != nil {
		return a.rdb, nil
	}
	raw, err := a.url()
	if err != nil {
		return nil, err
	}
	c, where, err := a.open(ctx, raw)
	if err != nil {
		return nil, err
	}
	a.rdb, a.where = c, where
	return c, nil
}

// open connects to a URL that may hold a password.
func (a *app) open(ctx context.Context, raw string) (redis.UniversalClient, string, error) {
	a.remember(raw)
	if auth := a.Getenv("REDISCLI_AUTH"); auth != "" && os.Getenv("HEADWATER_REDIS_PASSWORD") == "" {
		raw = withPassword(raw, auth)
	}
	c, topology, err := redisurl.Connect(ctx, raw)
	if err != nil {
		return nil, "", err
	}
	db := 0
	if single, ok := c.(*redis.Client); ok {
		db = single.Options().DB
	}
	return c, fmt.Sprintf("%s (%s), database %d", hosts(raw), topology, db), nil
}

// url is where the operator's words for the server stand, in the order of their nearness.
func (a *app) url() (string, error) {
	switch {
	case a.urlFlag != "":
		return fromFlag("--redis", a.urlFlag)
	case a.urlFile != "":
		return fromFile(a.urlFile)
	case a.Getenv("REDIS_URL") != "":
		return a.Getenv("REDIS_URL"), nil
	}
	return "", es.Invalid("no server is named: set REDIS_URL, such as redis://localhost:6379, or give --redis or --redis-file")
}

func fromFlag(name, raw string) (string, error) {
	user, _ := userinfo(raw)
	if _, password, has := strings.Cut(user, ":"); has && password != "" || strings.Contains(raw, "password=") {
		return "", es.Invalid("%s holds a password, which every user of this host can read in the list of processes: "+
			"put the URL into REDIS_URL or a file (--redis-file), or the password into HEADWATER_REDIS_PASSWORD", name)
	}
	return raw, nil
}

func fromFile(path string) (string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names it
	if err != nil {
		return "", es.Invalid("%w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(first), nil
}

// userinfo is what stands before the host, and what comes from the host on.
func userinfo(raw string) (user, rest string) {
	_, rest, _ = strings.Cut(raw, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		return rest[:at], rest[at+1:]
	}
	return "", rest
}

// withPassword is a URL with a password, unless it has one.
func withPassword(raw, password string) string {
	user, rest := userinfo(raw)
	scheme, _, found := strings.Cut(raw, "://")
	if !found || strings.Contains(user, ":") {
		return raw
	}
	return scheme + "://" + user + ":" + strings.ReplaceAll(url.PathEscape(password), "@", "%40") + "@" + rest
}

// hosts is a URL without scheme, user and parameters.
func hosts(raw string) string {
	_, rest := userinfo(raw)
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "/")
	return rest
}

// remember keeps the passwords that are in use, so that no error can show them.
func (a *app) remember(raw string) {
	user, _ := userinfo(raw)
	_, password, _ := strings.Cut(user, ":")
	plain, err := url.PathUnescape(password)
	if err != nil {
		plain = password
	}
	a.secrets = append(a.secrets, password, plain, a.Getenv("REDISCLI_AUTH"), os.Getenv("HEADWATER_REDIS_PASSWORD"))
	if _, query, ok := strings.Cut(raw, "?"); ok {
		values, _ := url.ParseQuery(query) // what cannot be read is refused later
		a.secrets = append(a.secrets, values.Get("sentinel_password"), values.Get("password"))
	}
}

func (a *app) redact(text string) string {
	for _, s := range a.secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return text
}
