package redisurl

import (
	"net/url"
	"strconv"
)

// refused parameters are go-redis's own, and would not do what they say here.
var refused = map[string]string{
	"addr":                       "further hosts stand behind the first, after a comma",
	"master_name":                "the master's name is the path",
	"username":                   "the user stands before the host",
	"password":                   "the password stands before the host",
	"read_only":                  fromReplicas,
	"replica_only":               fromReplicas,
	"route_by_latency":           fromReplicas,
	"route_by_latency_tolerance": fromReplicas,
	"route_randomly":             fromReplicas,
	"use_disconnected_replicas":  fromReplicas,
}

const fromReplicas = "Headwater reads from masters only, since replicas lag behind"

// readParameters takes the parameters that are ours, and leaves the others to go-redis.
func (t *target) readParameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return invalid("the parameters are not percent-encoded")
	}
	t.parameters = values
	for name, value := range values {
		if reason, ok := refused[name]; ok {
			return invalid("parameter %s: %s", name, reason)
		}
		if len(value) != 1 || value[0] == "" {
			return invalid("parameter %s must have one value", name)
		}
	}
	if t.kind == Sentinel {
		t.sentinelUsername = t.take("sentinel_username")
		t.sentinelPassword = t.take("sentinel_password")
	}
	if err := t.readSkipVerify(); err != nil {
		return err
	}
	if db := t.parameters.Get("db"); db != "" {
		return t.readDatabase(db)
	}
	return nil
}

// take removes a parameter, so that go-redis does not meet it.
func (t *target) take(name string) string {
	value := t.parameters.Get(name)
	t.parameters.Del(name)
	return value
}

func (t *target) readSkipVerify() (err error) {
	text := t.take("skip_verify")
	if text == "" {
		return nil
	}
	if t.skipVerify, err = strconv.ParseBool(text); err != nil {
		return invalid("skip_verify must be true or false")
	}
	if !t.tls {
		return invalid("skip_verify is about TLS: it needs rediss")
	}
	return nil
}
