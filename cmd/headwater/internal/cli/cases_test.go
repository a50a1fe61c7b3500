package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/cmd/headwater/internal/cli"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
)

// reading are all commands that only read, over what [scenery] has planted.
var reading = [][]string{
	{"aggregates", "list"}, {"aggregates", "list", "--scan"}, {"aggregates", "list", "shop.order"}, {"aggregates", "show", "shop.order", "o-1"},
	{"events", "shop.order", "o-1"}, {"events", "shop.order", "o-1", "--pretty"}, {"snapshot", "show", "shop.order", "o-1"},
	{"streams"}, {"groups"}, {"groups", "--consumers"}, {"dlq", "list"}, {"outbox", "list"}, {"prepare", "get", "name", "key"},
	{"doctor"}, {"doctor", "--full"}, {"migrate", "audit"},
}

func scenery(t *testing.T, rdb redis.UniversalClient, evil string) {
	t.Helper()
	plant(t, rdb, order.ID("o-1"), 3, true)
	plant(t, rdb, order.ID("o"+evil), 1, true)
	plantSnapshot(t, rdb, order.ID("o-1"), 3)
	send(t, rdb, topic, 2)
	bury(t, rdb, topic, "g"+evil, 1, "error"+evil)
	require.NoError(t, rdb.HSet(t.Context(), rediskey.Prepare("name", "key"), "value", `"`+evil+`"`, "ttlAt", 4_000_000_000_000).Err())
}

func TestCLI01_NoCommandAsksForEverythingAtOnce(t *testing.T) {
	t.Parallel()
	rdb, url := own(t, "slowlog-log-slower-than 0", "slowlog-max-len 100000")
	scenery(t, rdb, "")
	require.NoError(t, rdb.Do(t.Context(), "SLOWLOG", "RESET").Err())
	for _, args := range reading {
		require.Less(t, run(t, url, args...).code, 4, args)
	}
	calls, err := rdb.SlowLogGet(t.Context(), -1).Result()
	require.NoError(t, err)
	require.Greater(t, len(calls), 100, "every command is in the log")
	for _, c := range calls {
		line := strings.ToUpper(strings.Join(c.Args, " "))
		require.NotRegexp(t, `^(KEYS|HGETALL|LRANGE|MONITOR)\b`, line)
		if strings.HasPrefix(line, "SMEMBERS") {
			require.Equal(t, "SMEMBERS HEADWATER:{TOPICS}", line, "topics are few")
		}
		require.NotRegexp(t, `\b0 -1$`, line)
		if m := regexp.MustCompile(`COUNT (\d+)`).FindStringSubmatch(line); m != nil {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			require.LessOrEqual(t, n, 1000, line)
		}
	}
}

func TestCLI02_ADatabaseThatIsNotThereIsAnErrorBeforeTheFirstCommand(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	scenery(t, rdb, "")
	for _, path := range []string{"/abc", "/99", "/1/2", "?db=x", "?db=1&db=2"} {
		for _, args := range [][]string{{"aggregates", "list"}, {"dlq", "discard", "--all", "--yes"}} {
			require.NotZero(t, run(t, url+path, args...).code, path)
		}
	}
	r := run(t, "redis://"+redistest.SharedCluster(t).Nodes[0].Addr+"/3", "aggregates", "list")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "database 0 only")
	r = run(t, url+"/0", "dlq", "discard", "--all")
	require.Contains(t, r.err, strings.TrimPrefix(url, "redis://")+" (standalone), database 0: discard 1 dead letter")
	require.EqualValues(t, 1, rdb.XLen(t.Context(), rediskey.DeadLetters(topic)).Val())
}

func TestCLI03_ThePasswordIsNeverOnTheCommandLineNorInTheOutput(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-p@ss/w"
	rdb, url := own(t)
	scenery(t, rdb, "")
	require.NoError(t, rdb.ConfigSet(t.Context(), "requirepass", secret).Err())
	addr := strings.TrimPrefix(url, "redis://")
	encoded := "redis://:s3cr3t-p%40ss%2Fw@" + addr
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte(encoded+"\n"), 0o600))

	for _, flag := range []string{encoded, "redis://:plain@" + addr, "redis+sentinel://" + addr + "/m?sentinel_password=plain"} {
		r := run(t, "", "aggregates", "list", "--redis", flag)
		require.Equal(t, 2, r.code)
		require.Contains(t, r.err, "REDIS_URL")
		require.NotRegexp(t, `plain|s3cr3t`, r.err+r.out)
	}
	for _, way := range []struct {
		env  map[string]string
		args []string
	}{
		{map[string]string{"REDIS_URL": encoded}, nil},
		{map[string]string{"REDISCLI_AUTH": secret}, []string{"--redis", url}},
		{nil, []string{"--redis-file", file}},
	} {
		for _, args := range reading {
			for _, json := range [][]string{nil, {"--json"}} {
				r := runEnv(t, way.env, append(append(append([]string{}, args...), json...), way.args...)...)
				require.Less(t, r.code, 4)
				require.NotContains(t, r.out+r.err, "NOAUTH")
				require.NotContains(t, r.out+r.err, "s3cr3t")
			}
		}
	}
	r := runEnv(t, map[string]string{"REDIS_URL": strings.Replace(encoded, "s3cr3t", "wr0ng", 1)}, "streams", "--json")
	require.Equal(t, 1, r.code)
	require.NotContains(t, r.out+r.err, "wr0ng")
}

func TestCLI04_JSONIsOneDocumentAndAllElseGoesToStandardError(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	scenery(t, rdb, "\x1b\u009b\u202e")
	for _, args := range append([][]string{
		{"nonsense"}, {"events"}, {"events", "--bogus"}, {"dlq", "replay"}, {"events", "shop.order", "nobody"}, {"migrate", "copy"}, {"doctor", "explain", "HW1"},
	}, reading...) {
		r := run(t, url, append(args, "--json")...)
		require.NotEmpty(t, r.document(t))
		require.Regexp(t, `^[\x20-\x7e]+\n$`, strings.Map(plainLetters, r.out), "nothing that a terminal obeys")
	}
	r := run(t, "redis://127.0.0.1:1?max_retries=-1&dial_timeout=100ms", "streams", "--json")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.document(t), "error")
}

// plainLetters leaves letters beyond ASCII out of a comparison.
func plainLetters(r rune) rune {
	if r > 0x2fff {
		return -1
	}
	return r
}

// What a terminal obeys, in ids, names, errors and bodies.
const evil = "\x1b[2J\x1b]52;c;aGk=\x07\r\u009b31m\u202egnp.exe\u2066"

func TestCLI07_TextFromRedisIsShownEscaped(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	scenery(t, rdb, evil)
	obeyed := regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
	shown := false
	for _, args := range append([][]string{
		{"aggregates", "show", "shop.order", "o" + evil}, {"events", "shop.order", "o" + evil}, {"events", "shop.order", "nobody" + evil}, {"dlq", "show", topic, "1-1" + evil},
	}, reading...) {
		r := run(t, url, args...)
		require.NotRegexp(t, obeyed, r.out+r.err, args)
		shown = shown || strings.Contains(r.out, `\x1b[2J\x1b]52;c;aGk=\x07`)
		require.NotRegexp(t, obeyed, run(t, url, append(args, "--json")...).out, args)
	}
	require.True(t, shown)
}

// A terminal that is gone, as head leaves one, ends no run in a panic.
func TestOutputThatNobodyReadsIsNoPanic(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	scenery(t, rdb, "")
	r := runWith(t.Context(), cli.Environment{In: strings.NewReader(""), Out: broken{}}, map[string]string{"REDIS_URL": url}, "streams", "--json")
	require.Equal(t, 1, r.code)
}

type broken struct{}

// Write implements [io.Writer].
func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestFollowShowsWhatComes(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	plant(t, rdb, order.ID("o-1"), 1, false)
	out := &watched{lines: make(chan string, 10)}
	stop := follow(t, url, out, "events", "shop.order", "o-1", "--follow", "--json", "--interval", "10ms")
	require.Contains(t, <-out.lines, `"version":1`)
	key := rediskey.EventKeys(order.ID("o-1"))
	require.NoError(t, rdb.ZAdd(t.Context(), key.Stream, redisZ(2, "damaged")).Err())
	require.Contains(t, <-out.lines, `"version":2`)
	require.Zero(t, stop().code)
}

// follow runs what ends only when it is interrupted, which stop does.
func follow(t *testing.T, url string, out io.Writer, args ...string) (stop func() result) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan result, 1)
	go func() {
		ended <- runWith(ctx, cli.Environment{In: strings.NewReader(""), Out: out}, map[string]string{"REDIS_URL": url}, args...)
	}()
	return func() result {
		cancel()
		return <-ended
	}
}

// watched hands on each write.
type watched struct{ lines chan string }

// Write implements [io.Writer].
func (w *watched) Write(p []byte) (int, error) {
	select {
	case w.lines <- string(bytes.Clone(p)):
	default: // the test has seen enough
	}
	return len(p), nil
}
