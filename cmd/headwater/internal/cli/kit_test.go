package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/cmd/headwater/internal/cli"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// result is what became of one run of the program.
type result struct {
	code     int
	out, err string
}

// run runs the program on the server of a URL, as nobody at a terminal does.
func run(t *testing.T, url string, args ...string) result {
	t.Helper()
	return runWith(t.Context(), cli.Environment{In: strings.NewReader("")}, map[string]string{"REDIS_URL": url}, args...)
}

func runWith(ctx context.Context, e cli.Environment, env map[string]string, args ...string) result {
	var out, err bytes.Buffer
	if e.Out == nil {
		e.Out = &out
	}
	e.Err, e.Getenv = &err, func(name string) string { return env[name] }
	code := cli.Run(ctx, args, e)
	return result{code, out.String(), err.String()}
}

// document is standard output, which must be one JSON document.
func (r result) document(t *testing.T) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.out))
	var v map[string]any
	require.NoError(t, d.Decode(&v), "%q", r.out)
	require.False(t, d.More(), "one document: %q", r.out)
	return v
}

// session is several runs, compared with testdata/<name>.golden.
type session struct {
	t    *testing.T
	name string
	url  string
	// args stand for what differs from run to run.
	args map[string]string
	// volatile is what differs in every run beside what [normal] knows.
	volatile *regexp.Regexp
	text     strings.Builder
}

func newSession(t *testing.T, name, url string) *session {
	t.Helper()
	s := &session{t: t, name: name, url: url}
	t.Cleanup(s.compare)
	return s
}

// run adds a run to the session, once more with --json.
func (s *session) run(args ...string) {
	s.t.Helper()
	s.once(args...)
	s.once(append(args, "--json")...)
}

// once adds a run to the session.
func (s *session) once(args ...string) result {
	s.t.Helper()
	given := make([]string, len(args))
	for i, a := range args {
		if given[i] = s.args[a]; given[i] == "" {
			given[i] = a
		}
	}
	r := run(s.t, s.url, given...)
	fmt.Fprintf(&s.text, "$ headwater %s\n%s", strings.Join(args, " "), r.out)
	for line := range strings.Lines(r.err) {
		s.text.WriteString("! " + line)
	}
	fmt.Fprintf(&s.text, "= %d\n\n", r.code)
	if len(args) > 0 && args[len(args)-1] == "--json" {
		r.document(s.t)
	}
	return r
}

func (s *session) compare() {
	path := filepath.Join("testdata", s.name+".golden")
	got := normal(s.text.String())
	if s.volatile != nil {
		got = s.volatile.ReplaceAllString(got, "…")
	}
	if *update {
		require.NoError(s.t, os.MkdirAll("testdata", 0o750))
		require.NoError(s.t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(s.t, err, "run the test with -update")
	require.Equal(s.t, string(want), got)
}

// What differs from run to run stands as a word.
var (
	address  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	age      = regexp.MustCompile(`\b\d+(ms|s|m|h|d)\b`)
	millis   = regexp.MustCompile(`"(\w+_ms)":-?\d+`)
	entryID  = regexp.MustCompile(`\b1[89]\d{11}-\d+\b|\b17[1-9]\d{10}-\d+\b`)
	checksum = regexp.MustCompile(`\b[0-9a-f]{32,64}\b`)
	instant  = regexp.MustCompile(`\b20(2[4-9]|[3-9]\d)-[-\dT:.]+Z`)
	bytesOf  = regexp.MustCompile(`"(\w*bytes)":\d+|\b\d+(\.\d)? [KMG]?i?B\b`)
	spaces   = regexp.MustCompile(`(\S) {3,}`)
)

func normal(text string) string {
	text = address.ReplaceAllString(text, "SERVER")
	text = millis.ReplaceAllString(text, `"$1":MS`)
	text = entryID.ReplaceAllString(text, "ID")
	text = instant.ReplaceAllString(text, "TIME")
	text = checksum.ReplaceAllString(text, "CHECKSUM")
	text = bytesOf.ReplaceAllString(text, "SIZE")
	text = age.ReplaceAllString(text, "AGE")
	return spaces.ReplaceAllString(text, "$1  ")
}

// own is a server of the test's own, and its URL.
func own(t *testing.T, config ...string) (*redis.Client, string) {
	t.Helper()
	s := redistest.Standalone(t, config...)
	return s.Client(t), "redis://" + s.Addr
}

var order = es.AggregateType{Context: "shop", Name: "order"}

// commit is one whose bytes are the same in every run.
func commit(id es.AggregateID, version int, bodies ...string) es.Commit {
	name := fmt.Sprintf("%s-%d", id.ID, version)
	c := es.Commit{
		ID: "c-" + name, Aggregate: id, CommandID: "cmd-" + name, RequestID: "req-" + name, Version: version,
		CreateTime: time.UnixMilli(1_700_000_000_000 + int64(version)).UTC(),
	}
	for i, b := range bodies {
		c.Events = append(c.Events, es.Event{ID: fmt.Sprintf("e-%s-%d", name, i), Name: "order_paid", Revision: "0.0.1", BodyType: "order_paid", Body: es.Raw(b)})
	}
	c.Derive()
	return c
}

// plant stores an aggregate with so many commits, unpublished where noted.
func plant(t *testing.T, rdb redis.UniversalClient, id es.AggregateID, commits int, noted bool) {
	t.Helper()
	store := eventstore.New(rdb, wire.JSON())
	for v := 1; v <= commits; v++ {
		_, err := store.Append(t.Context(), es.AppendOptions{Note: noted}, commit(id, v, fmt.Sprintf(`{"cents":%d}`, 100*v)))
		require.NoError(t, err)
	}
}

func plantSnapshot(t *testing.T, rdb redis.UniversalClient, id es.AggregateID, version int) {
	t.Helper()
	m := es.Meta{
		Aggregate: id, Version: version, EventID: fmt.Sprintf("c-%s-%d", id.ID, version),
		FirstEventTime: time.UnixMilli(1_700_000_000_001).UTC(), EventTime: time.UnixMilli(1_700_000_000_001).UTC(),
		SnapshotTime: time.UnixMilli(1_700_000_000_500).UTC(), Schema: "v1",
	}
	require.NoError(t, snapshot.New[es.Raw](rdb, wire.JSON(es.Types{Aggregate: id.Type})).Save(t.Context(), es.Snapshot[es.Raw]{Meta: m, State: es.Raw(`{"cents":300}`)}))
}

func redisZ(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

// runEnv runs the program in an environment.
func runEnv(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	return runWith(t.Context(), cli.Environment{In: strings.NewReader("")}, env, args...)
}

// sinceSeven skips on servers that count neither what a stream got nor what a group lacks.
func sinceSeven(t *testing.T, rdb *redis.Client) {
	t.Helper()
	if strings.Contains(rdb.Info(t.Context(), "server").Val(), "redis_version:6.") {
		t.Skip("Redis 6 does not count what this test looks at")
	}
}
