package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// healthy is a server of which the doctor has nothing to say.
func healthy(t *testing.T, config ...string) (*redis.Client, string) {
	t.Helper()
	master := redistest.Standalone(t, append([]string{
		"appendonly yes", "appendfsync everysec", "maxmemory 200mb", "maxmemory-policy noeviction", "tcp-keepalive 300", "min-replicas-to-write 1",
	}, config...)...)
	redistest.Standalone(t, "replicaof "+strings.Replace(master.Addr, ":", " ", 1))
	rdb := master.Client(t)
	require.Eventually(t, func() bool {
		return strings.Contains(rdb.Info(t.Context(), "replication").Val(), "min_slaves_good_slaves:1")
	}, time.Minute, 50*time.Millisecond)
	return rdb, "redis://" + master.Addr
}

// examine is the codes that doctor finds, and its exit code.
func examine(t *testing.T, url string, args ...string) ([]string, int) {
	t.Helper()
	r := run(t, url, append([]string{"doctor", "--json"}, args...)...)
	var codes []string
	findings, ok := r.document(t)["findings"].([]any)
	require.True(t, ok, r.out)
	for _, f := range findings {
		code, _ := f.(map[string]any)["code"].(string)
		codes = append(codes, code)
	}
	return codes, r.code
}

func set(name, value string) func(*testing.T, *redis.Client) {
	return func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		require.NoError(t, rdb.ConfigSet(t.Context(), name, value).Err())
	}
}

const topic = "shop.order:event"

// Each fault is planted on a healthy server, and found with its code.
func TestDoctorFindsEachFault(t *testing.T) {
	t.Parallel()
	rdb, url := healthy(t)
	codes, exit := examine(t, url, "--full")
	require.Empty(t, codes)
	require.Zero(t, exit)
	for _, c := range []struct {
		code  string
		exit  int
		plant func(*testing.T, *redis.Client)
		args  []string
		mend  func(*testing.T, *redis.Client)
	}{
		{"HW001", 2, set("maxmemory-policy", "allkeys-lru"), nil, set("maxmemory-policy", "noeviction")},
		{"HW001", 1, set("maxmemory-policy", "volatile-ttl"), nil, set("maxmemory-policy", "noeviction")},
		{"HW002", 1, set("maxmemory", "0"), nil, set("maxmemory", "200mb")},
		{"HW003", 2, set("maxmemory", "1mb"), nil, set("maxmemory", "200mb")},
		{"HW005", 1, set("appendfsync", "no"), nil, set("appendfsync", "everysec")},
		{"HW008", 1, set("min-replicas-to-write", "0"), nil, set("min-replicas-to-write", "1")},
		{"HW011", 1, set("tcp-keepalive", "0"), nil, set("tcp-keepalive", "300")},
		{"HW012", 1, set("timeout", "60"), nil, set("timeout", "0")},
		{"HW014", 0, misses, nil, func(t *testing.T, rdb *redis.Client) { t.Helper(); rdb.ConfigResetStat(t.Context()) }},
		{"HW020", 1, untrimmed, nil, flush},
		{"HW022", 1, unread, nil, flush},
		{"HW023", 0, departed, nil, flush},
		{"HW024", 2, stuck, nil, flush},
		{"HW025", 1, func(t *testing.T, rdb *redis.Client) {
			t.Helper()
			send(t, rdb, topic, 1)
			bury(t, rdb, topic, "g", 1, "x")
		}, nil, flush},
		{"HW026", 1, func(t *testing.T, rdb *redis.Client) { t.Helper(); plant(t, rdb, order.ID("o-1"), 1, true) }, []string{"--full"}, flush},
		{"HW027", 0, ended, nil, flush},
		{"HW028", 2, old, nil, flush},
		{"HW028", 2, old, []string{"--full"}, flush},
		{"HW029", 2, hollow, []string{"--full"}, flush},
	} {
		c.plant(t, rdb)
		codes, exit := examine(t, url, c.args...)
		require.Contains(t, codes, c.code)
		if c.exit > 0 {
			require.Equal(t, c.exit, exit, "%s: %v", c.code, codes)
		}
		c.mend(t, rdb)
		codes, _ = examine(t, url, "--full")
		require.NotContains(t, codes, c.code, "it was mended")
	}
}

func flush(t *testing.T, rdb *redis.Client) {
	t.Helper()
	require.NoError(t, rdb.FlushAll(t.Context()).Err())
}

func misses(t *testing.T, rdb *redis.Client) {
	t.Helper()
	_, _ = rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range 12_000 {
			p.Get(t.Context(), "nobody")
		}
		return nil
	})
}

// untrimmed has entries of long ago that the only group has acknowledged.
func untrimmed(t *testing.T, rdb *redis.Client) {
	t.Helper()
	send(t, rdb, topic, 3)
	g, entries := take(t, rdb, topic, "g", "c", 3)
	for _, e := range entries {
		_, err := g.Ack(t.Context(), topic, []string{e.ID})
		require.NoError(t, err)
	}
}

func unread(t *testing.T, rdb *redis.Client) {
	t.Helper()
	send(t, rdb, topic, 3)
	require.NoError(t, rdb.XGroupCreate(t.Context(), topic, "g", "0").Err())
}

func departed(t *testing.T, rdb *redis.Client) {
	t.Helper()
	send(t, rdb, topic, 1)
	require.NoError(t, rdb.XGroupCreate(t.Context(), topic, "g", "$").Err())
	require.NoError(t, rdb.XGroupCreateConsumer(t.Context(), topic, "g", "c").Err())
	g := recovery.NewGroup(rdb, topic, "g", "c")
	require.NoError(t, g.Renew(t.Context()))
	require.NoError(t, g.Leave(t.Context()))
}

func stuck(t *testing.T, rdb *redis.Client) {
	t.Helper()
	send(t, rdb, topic, 1)
	_, entries := take(t, rdb, topic, "g", "c", 1)
	require.NoError(t, rdb.Do(t.Context(), "XCLAIM", topic, "g", "c", 0, entries[0].ID, "IDLE", 2*time.Hour.Milliseconds()).Err())
}

func ended(t *testing.T, rdb *redis.Client) {
	t.Helper()
	require.NoError(t, rdb.HSet(t.Context(), rediskey.Prepare("name", "old"), "value", "1", "ttlAt", 1_700_000_000_000).Err())
}

func old(t *testing.T, rdb *redis.Client) {
	t.Helper()
	require.NoError(t, recovery.Register(t.Context(), rdb, topic))
	require.NoError(t, rdb.SAdd(t.Context(), "shop.order:es:req_idx", "r").Err())
}

// hollow is in the index, and has no commits.
func hollow(t *testing.T, rdb *redis.Client) {
	t.Helper()
	key := rediskey.EventKeys(order.ID("o-1"))
	require.NoError(t, rdb.ZAdd(t.Context(), key.IDs, redisZ(0, key.Member)).Err())
}

func TestDoctorFindsFaultsOfTheServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code   string
		config []string
		plant  func(*testing.T, *redis.Client, string)
	}{
		"nothing is saved": {"HW004", []string{"appendonly no", `save ""`}, nil},
		"no replica":       {"HW007", nil, nil},
		"renamed":          {"HW010", []string{`rename-command COPY ""`}, nil},
		"clients": {"HW013", []string{"maxclients 20"}, func(t *testing.T, rdb *redis.Client, _ string) {
			t.Helper()
			for range 16 {
				conn := rdb.Conn()
				require.NoError(t, conn.Ping(t.Context()).Err())
				t.Cleanup(func() { _ = conn.Close() })
			}
		}},
		"disk": {"HW006", nil, func(t *testing.T, rdb *redis.Client, dir string) {
			t.Helper()
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, rdb.BgSave(t.Context()).Err())
			require.Eventually(t, func() bool {
				return strings.Contains(rdb.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
			}, time.Minute, 50*time.Millisecond)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.Mkdir(dir, 0o750))
			rdb, url := own(t, append([]string{"dir " + dir}, c.config...)...)
			if c.plant != nil {
				c.plant(t, rdb, dir)
			}
			codes, exit := examine(t, url)
			require.Contains(t, codes, c.code)
			require.NotZero(t, exit)
		})
	}
}

func TestDoctorOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t, 0)
	url := "redis://" + cluster.Nodes[0].Addr
	codes, _ := examine(t, url, "--full")
	require.NotContains(t, codes, "HW000")
	require.NotContains(t, codes, "HW015")
	for _, n := range cluster.Nodes {
		require.NoError(t, n.Client(t).ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
		require.NoError(t, n.Client(t).Do(t.Context(), "CLUSTER", "DELSLOTS", "5000").Err())
	}
	codes, exit := examine(t, url)
	require.Contains(t, codes, "HW015")
	require.Equal(t, 2, exit)
}

// Who may read and no more is told what a service would lack, and what could not be seen.
func TestDoctorTellsWhatTheUserLacks(t *testing.T) {
	t.Parallel()
	rdb, url := healthy(t)
	sinceSeven(t, rdb)
	require.NoError(t, rdb.ACLSetUser(t.Context(), "reader", "on", ">pw", "~*", "+@read", "+@connection", "+@scripting", "+info", "+time", "-xinfo").Err())
	r := runEnv(t, map[string]string{"REDIS_URL": strings.Replace(url, "redis://", "redis://reader:pw@", 1)}, "doctor", "--json")
	require.Equal(t, 3, r.code, r.out)
	require.Contains(t, r.out, "HW030")
	require.Contains(t, r.out, "XADD on keys such as a.b:event")
	require.Contains(t, r.out, "HW000")
}

func TestDoctorFixes(t *testing.T) {
	t.Parallel()
	rdb, url := healthy(t, "tcp-keepalive 0", "maxmemory-policy allkeys-lfu")
	departed(t, rdb)
	ended(t, rdb)
	s := newSession(t, "doctor", url)
	s.run("doctor")
	require.Equal(t, "allkeys-lfu", rdb.ConfigGet(t.Context(), "maxmemory-policy").Val()["maxmemory-policy"], "it reads only")
	s.once("doctor", "--fix")
	s.run("doctor", "--full")
	s.run("doctor", "explain", "HW024")
	s.once("doctor", "explain")
	s.run("doctor", "explain", "HW999")
	codes, _ := examine(t, url, "--full")
	require.Equal(t, []string{"HW020"}, codes, "what is not safe to fix")
}
