package doctor

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// memory looks at HW001 to HW003.
func (v *visit) memory(context.Context) {
	for _, n := range v.nodes {
		if policy := n.info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
			level := Warning
			if strings.HasPrefix(policy, "allkeys-") {
				level = Error
			}
			found := v.add("HW001", level, n.Addr, "maxmemory-policy is %s: when memory is full, the server removes keys", policy)
			found.fix = func(ctx context.Context) (string, error) {
				return "set maxmemory-policy noeviction until the next restart; put it into redis.conf too", n.Client.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err()
			}
		}
		limit, used := n.info.Int("maxmemory"), n.info.Int("used_memory")
		switch {
		case n.info["maxmemory"] == "":
		case limit == 0:
			v.add("HW002", Warning, n.Addr, "maxmemory is not set: the machine's memory is the limit, and its end is the kernel's kill")
		case used*100 >= limit*90:
			v.add("HW003", Error, n.Addr, "%d %% of maxmemory are used", used*100/limit)
		case used*100 >= limit*75:
			v.add("HW003", Warning, n.Addr, "%d %% of maxmemory are used", used*100/limit)
		}
	}
}

// persistence looks at HW004 to HW006.
func (v *visit) persistence(ctx context.Context) {
	for _, n := range v.nodes {
		if n.info["aof_enabled"] == "0" {
			if save, ok := v.config(ctx, n, "save"); ok && save == "" {
				v.add("HW004", Error, n.Addr, "neither appendonly nor save is on: a restart loses everything")
			} else {
				v.add("HW004", Warning, n.Addr, "appendonly is off: a crash loses what came after the last snapshot")
			}
		} else if fsync, ok := v.config(ctx, n, "appendfsync"); ok && fsync == "no" {
			v.add("HW005", Warning, n.Addr, "appendfsync is no: a crash of the machine loses about half a minute")
		}
		for _, status := range []string{"rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"} {
			if s := n.info[status]; s != "" && s != "ok" {
				v.add("HW006", Error, n.Addr, "%s is %s: the server cannot write to its disk", status, s)
			}
		}
	}
}

// replicas looks at HW007 and HW008.
func (v *visit) replicas(ctx context.Context) {
	for _, n := range v.nodes {
		if n.info["connected_slaves"] == "" {
			continue
		}
		if n.info.Int("connected_slaves") == 0 {
			v.add("HW007", Warning, n.Addr, "no replica is connected: nothing takes over when this server is lost")
			continue
		}
		if least, ok := v.config(ctx, n, "min-replicas-to-write"); ok && least == "0" {
			v.add("HW008", Warning, n.Addr, "min-replicas-to-write is 0: a master that was cut off goes on taking writes, which the failover loses")
		}
	}
}

// commands that Headwater runs, or that its scripts run.
var commands = []string{
	"EVALSHA", "SCRIPT", "ZADD", "ZRANGEBYLEX", "ZREVRANGE", "XADD", "XREADGROUP", "XPENDING", "XCLAIM", "XINFO", "XTRIM", "COPY", "SCAN", "HELLO", "UNLINK",
}

// version looks at HW009 and HW010.
func (v *visit) version(ctx context.Context) {
	for _, n := range v.nodes {
		if text := n.info["redis_version"]; text != "" && older(text, 6, 2) {
			v.add("HW009", Error, n.Addr, "the server is version %s, and Headwater needs 6.2", text)
		}
		infos, err := n.Client.Command(ctx).Result()
		if err != nil {
			v.unable(n.Addr, "the list of commands", err)
			continue
		}
		var missing []string
		for _, c := range commands {
			if infos[strings.ToLower(c)] == nil {
				missing = append(missing, c)
			}
		}
		if len(missing) > 0 {
			v.add("HW010", Error, n.Addr, "the server does not know %s", strings.Join(missing, ", "))
		}
	}
}

func older(version string, major, minor int) bool {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, err := strconv.Atoi(a)
	y, err2 := strconv.Atoi(b)
	return err == nil && err2 == nil && (x < major || x == major && y < minor)
}

// connections looks at HW011 to HW014.
func (v *visit) connections(ctx context.Context) {
	for _, n := range v.nodes {
		if keepalive, ok := v.config(ctx, n, "tcp-keepalive"); ok && keepalive == "0" {
			v.add("HW011", Warning, n.Addr, "tcp-keepalive is 0: connections of vanished clients stay for ever").fix = func(ctx context.Context) (string, error) {
				return "set tcp-keepalive 300 until the next restart; put it into redis.conf too", n.Client.ConfigSet(ctx, "tcp-keepalive", "300").Err()
			}
		}
		if timeout, ok := v.config(ctx, n, "timeout"); ok {
			if s, err := strconv.Atoi(timeout); err == nil && s > 0 && s < 300 {
				v.add("HW012", Warning, n.Addr, "timeout is %d s: the server closes connections that a pool keeps", s)
			}
		}
		clients, most := n.info.Int("connected_clients"), n.info.Int("maxclients")
		if most > 0 && clients*100 >= most*80 {
			v.add("HW013", Warning, n.Addr, "%d of %d clients are connected, %d of them blocked", clients, most, n.info.Int("blocked_clients"))
		}
		hits, misses := n.info.Int("keyspace_hits"), n.info.Int("keyspace_misses")
		if all := hits + misses; all >= 10_000 && hits*5 < all {
			v.add("HW014", Note, n.Addr, "%d %% of the keys that were asked for were there", hits*100/all)
		}
	}
}

// cluster looks at HW015.
func (v *visit) cluster(ctx context.Context) {
	c, ok := v.rdb.(*redis.ClusterClient)
	if !ok {
		return
	}
	text, err := c.ClusterInfo(ctx).Result()
	if err != nil {
		v.unable("", "CLUSTER INFO", err)
		return
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	if info["cluster_state"] != "ok" || info["cluster_slots_ok"] != "16384" {
		v.add("HW015", Error, "", "the cluster's state is %s, and %s of 16384 slots are served", info["cluster_state"], info["cluster_slots_ok"])
	}
}
