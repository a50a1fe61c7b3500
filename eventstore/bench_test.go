package eventstore_test

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
	"github.com/headwater-go/headwater/wire"
)

// Each benchmark runs what it measures and its yardstick in turns, in one run on one
// server, and reports their ratio: the figure of a noisy machine that means something.

// referenceAppend is a script with the contract of the reference's, in our words (Wow v8.10.10).
//
//go:embed testdata/reference_append.lua
var referenceAppend string

type added struct {
	SKU   string `json:"sku"`
	Count int64  `json:"count"`
	Note  string `json:"note"`
}

func (added) EventName() string { return "added" }

var benchSeq atomic.Int64

func benchType() es.AggregateType {
	return es.AggregateType{Context: "bench", Name: fmt.Sprintf("order%d", benchSeq.Add(1))}
}

func benchTypes(t es.AggregateType) es.Types {
	return es.Types{Aggregate: t, Events: []es.Type{{Body: added{}}}}
}

// benchCommit is about 400 bytes as JSON.
func benchCommit(id es.AggregateID, version int) es.Commit {
	n := strconv.Itoa(version)
	return es.Commit{
		ID: id.ID + "-" + n, Aggregate: id, CommandID: "c-" + n, RequestID: "r-" + n, Version: version, CreateTime: time.UnixMilli(1700000000000),
		Header: es.Header{{Key: es.HeaderTraceID, Value: "0Tvcokgi0001001"}},
		Events: []es.Event{{ID: "e-" + n, Name: "added", Revision: es.DefaultRevision, Body: added{SKU: "A-1", Count: 2, Note: "leave it at the door"}}},
	}
}

// turns runs the functions by turns, each on all workers at once, until each has done
// b.N operations, and returns the time each took. A function is told its worker and a
// number that is new for it.
func turns(b *testing.B, workers int, fs ...func(worker, n int)) []time.Duration {
	b.Helper()
	took, _ := measure(b, workers, fs...)
	return took
}

// measure is turns, and counts each function's allocations for one operation.
func measure(b *testing.B, workers int, fs ...func(worker, n int)) (took []time.Duration, allocs []float64) {
	b.Helper()
	took, allocs = make([]time.Duration, len(fs)), make([]float64, len(fs))
	round := max(min(b.N/50, 400)/workers, 1) * workers // short, so that both meet the same weather
	b.ResetTimer()
	for done := 0; done < b.N; done += round {
		size := min(round, b.N-done)
		for i, f := range fs {
			if i > 0 {
				b.StopTimer()
			}
			before, start := mallocs(), time.Now()
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for n := w; n < size; n += workers {
						f(w, done+n)
					}
				})
			}
			wg.Wait()
			took[i] += time.Since(start)
			allocs[i] += float64(mallocs()-before) / float64(b.N)
			b.StartTimer()
		}
	}
	b.StopTimer()
	return took, allocs
}

// mallocs is how often the process has allocated so far.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// bare is one append as go-redis would send it: same script, same keys, same bytes.
type bare struct {
	keys []string
	args []any
}

func bareAppend(b *testing.B, codec es.Codec, c es.Commit) bare {
	b.Helper()
	data, err := codec.EncodeCommit(&c)
	require.NoError(b, err)
	k := rediskey.EventKeys(c.Aggregate)
	out := bare{[]string{k.Stream, k.Requests}, []any{strconv.Itoa(c.Version), "", "", c.RequestID, data}}
	if c.Version == 1 {
		out.keys, out.args[2] = append(out.keys, k.IDs, k.Purged), k.Member
	}
	return out
}

func (a bare) send(b *testing.B, rdb redis.Cmdable) {
	if got, err := rdb.EvalSha(context.Background(), lua.AppendCommits.Hash(), a.keys, a.args...).Result(); err != nil || got != "ok" {
		b.Error(got, err)
	}
}

func BenchmarkAppend(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	ap, err := rdb.AutoPipeline()
	require.NoError(b, err)
	b.Cleanup(func() { _ = ap.Close() })
	for _, client := range []struct {
		name string
		rdb  redis.UniversalClient
	}{{"plain", rdb}, {"autopipeline", ap}} {
		for _, shape := range []string{"new", "long"} {
			for _, workers := range []int{1, 50} {
				if client.name == "autopipeline" && workers == 1 {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/workers=%d", client.name, shape, workers), func(b *testing.B) {
					benchAppend(b, client.rdb, shape == "long", workers)
				})
			}
		}
	}
}

func benchAppend(b *testing.B, rdb redis.UniversalClient, long bool, workers int) {
	b.ReportAllocs()
	typ := benchType()
	codec := wire.JSON(benchTypes(typ))
	store := eventstore.New(rdb, codec)
	ctx := b.Context()
	require.NoError(b, store.Ready(ctx, typ))
	at := func(side string, w, n int) (es.AggregateID, int) {
		if long {
			return typ.ID(fmt.Sprintf("%s-worker-%05d", side, w)), n/workers + 1
		}
		return typ.ID(fmt.Sprintf("%s-order-%08d", side, n)), 1
	}
	bares := make([]bare, b.N)
	for n := range bares {
		id, version := at("bare", n%workers, n)
		if long {
			version = n/workers + 1
		}
		bares[n] = bareAppend(b, codec, benchCommit(id, version))
	}
	commits := make([]es.Commit, b.N)
	for n := range commits {
		id, version := at("ours", n%workers, n)
		commits[n] = benchCommit(id, version)
	}
	_, err := store.Append(ctx, es.AppendOptions{}, benchCommit(typ.ID("warm"), 1))
	require.NoError(b, err)
	took, allocs := measure(b, workers,
		func(_, n int) {
			if _, err := store.Append(ctx, es.AppendOptions{}, commits[n]); err != nil {
				b.Error(err)
			}
		},
		func(_, n int) { bares[n].send(b, rdb) })
	b.ReportMetric(float64(took[1])/float64(took[0]), "x-bare")
	b.ReportMetric(allocs[0], "allocs/append")
	b.ReportMetric(allocs[1], "allocs/bare")
}

// BenchmarkAppendAgainstReference holds appends of new aggregates, 50 at a time on an
// AutoPipeline client, against redis-benchmark sending the reference's own script with
// the same bytes, 50 connections and 16 in a pipeline: the server's ceiling.
func BenchmarkAppendAgainstReference(b *testing.B) {
	server := redistest.Shared(b)
	rdb := server.Client(b)
	ap, err := rdb.AutoPipeline()
	require.NoError(b, err)
	b.Cleanup(func() { _ = ap.Close() })
	for _, workers := range []int{50, 400} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			typ := benchType()
			codec := wire.JSON(benchTypes(typ))
			store := eventstore.New(ap, codec)
			_, err := store.Append(b.Context(), es.AppendOptions{}, benchCommit(typ.ID("warm"), 1))
			require.NoError(b, err)
			ceiling := reference(b, server, codec, typ)
			took := turns(b, workers, func(_, n int) {
				if _, err := store.Append(b.Context(), es.AppendOptions{}, benchCommit(typ.ID(fmt.Sprintf("ours-order-%08d", n)), 1)); err != nil {
					b.Error(err)
				}
			})
			ceiling = (ceiling + reference(b, server, codec, typ)) / 2
			b.ReportMetric(float64(b.N)/took[0].Seconds()/ceiling, "x-reference")
		})
	}
}

// reference is the rate of redis-benchmark with the script of the reference's contract.
// Every mark in its arguments becomes another random number, so the index range that it
// looks at is one that is empty for sure.
func reference(b *testing.B, server *redistest.Server, codec es.Codec, typ es.AggregateType) float64 {
	b.Helper()
	return referenceWith(b, server, codec, typ, pipelined)
}

// The two ways in which redis-benchmark is the yardstick.
var (
	pipelined = []string{"-c", "50", "-P", "16", "-n", "150000"}
	single    = []string{"-c", "1", "-n", "20000"}
)

func referenceWith(b *testing.B, server *redistest.Server, codec es.Codec, typ es.AggregateType, flags []string) float64 {
	b.Helper()
	path, err := exec.LookPath("redis-benchmark")
	if err != nil {
		b.Skip("redis-benchmark is not installed: it comes with redis-tools")
	}
	sha, err := server.Client(b).ScriptLoad(b.Context(), referenceAppend).Result()
	require.NoError(b, err)
	data, err := codec.EncodeCommit(new(benchCommit(typ.ID("ours-order-00000001"), 1)))
	require.NoError(b, err)
	k := rediskey.EventKeys(typ.ID("reference"))
	const mark = "__rand_int__"
	member := strings.Repeat("0030", 19-len(mark)/4) + mark
	args := append([]string{"-p", server.Addr[strings.LastIndex(server.Addr, ":")+1:]}, flags...)
	args = append(args, "-r", "2000000000", "--csv", "EVALSHA", sha, "3",
		k.Stream+mark, k.IDs, k.Stream+mark+":req_idx", "r-"+mark, "1", mark+string(data[len(mark):]),
		member+".KDAp", "7a7a"+member[4:]+".", "7a7a"+member[4:]+"/")
	out, err := exec.CommandContext(b.Context(), path, args...).Output()
	require.NoError(b, err)
	for line := range strings.Lines(string(out)) {
		// The command itself comes first and is not escaped: count from the end.
		if fields := strings.Split(line, "\",\""); strings.HasPrefix(line, "\"EVALSHA") && len(fields) > 7 {
			rate, err := strconv.ParseFloat(fields[len(fields)-7], 64)
			require.NoError(b, err)
			return rate
		}
	}
	b.Fatalf("redis-benchmark said %s", out)
	return 0
}

// BenchmarkAppendNoted holds a command's two round trips with a note (append; move the
// note and acknowledge) against the same two without one (append; acknowledge).
func BenchmarkAppendNoted(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	for _, workers := range []int{1, 50} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			typ := benchType()
			store := eventstore.New(rdb, wire.JSON(benchTypes(typ)))
			warm := typ.ID("warm")
			_, err := store.Append(b.Context(), es.AppendOptions{}, benchCommit(warm, 1))
			require.NoError(b, err)
			_, err = store.Published(b.Context(), warm, 1, 1)
			require.NoError(b, err)
			one := func(side string, o es.AppendOptions, n int) rediskey.Events {
				id := typ.ID(fmt.Sprintf("%s-order-%08d", side, n))
				if _, err := store.Append(b.Context(), o, benchCommit(id, 1)); err != nil {
					b.Error(err)
				}
				return rediskey.EventKeys(id)
			}
			took := turns(b, workers,
				func(_, n int) {
					k := one("noted", es.AppendOptions{Note: true}, n)
					if _, err := rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
						p.EvalSha(b.Context(), lua.MoveNote.Hash(), []string{k.Outbox, k.Stream}, k.Identity, 1, 1)
						p.XAck(b.Context(), "bench:command", "bench", "1-1")
						return nil
					}); err != nil {
						b.Error(err)
					}
				},
				func(_, n int) {
					one("plain", es.AppendOptions{}, n)
					if err := rdb.XAck(b.Context(), "bench:command", "bench", "1-1").Err(); err != nil {
						b.Error(err)
					}
				})
			b.ReportMetric(float64(took[0])/float64(took[1]), "x-without")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	for _, commits := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("commits=%d", commits), func(b *testing.B) {
			b.ReportAllocs()
			typ := benchType()
			store := eventstore.New(rdb, wire.JSON(benchTypes(typ)))
			id := typ.ID("long")
			fillLong(b, store, id, commits)
			key := rediskey.EventKeys(id).Stream
			took, allocs := measure(b, 1,
				func(_, _ int) {
					got := 0
					for _, err := range store.Load(b.Context(), id, es.Versions{}) {
						if err != nil {
							b.Fatal(err)
						}
						got++
					}
					if got != commits {
						b.Fatal(got)
					}
				},
				func(_, _ int) { bareLoad(b, rdb, key, commits) })
			b.ReportMetric(float64(took[1])/float64(took[0]), "x-bare")
			b.ReportMetric(float64(took[0].Nanoseconds())/float64(b.N)/float64(commits), "ns/commit")
			b.ReportMetric(allocs[0]/float64(commits), "allocs/event") // a commit has one
			b.ReportMetric(allocs[1]/float64(commits), "allocs/bare")
		})
	}
}

func fillLong(b *testing.B, store *eventstore.Store, id es.AggregateID, commits int) {
	b.Helper()
	for v := 1; v <= commits; v += 500 {
		var batch []es.Commit
		for i := v; i < v+500 && i <= commits; i++ {
			batch = append(batch, benchCommit(id, i))
		}
		_, err := store.Append(b.Context(), es.AppendOptions{}, batch...)
		require.NoError(b, err)
	}
}

// bareLoad is one ZRANGEBYSCORE, and the bodies decoded by the library that the codec uses.
func bareLoad(b *testing.B, rdb redis.Cmdable, key string, commits int) {
	b.Helper()
	members, err := rdb.ZRangeByScore(b.Context(), key, &redis.ZRangeBy{Min: "1", Max: "+inf"}).Result()
	require.NoError(b, err)
	require.Len(b, members, commits)
	for _, m := range members {
		at := strings.Index(m, `"body":{`) + len(`"body":`)
		end := strings.IndexByte(m[at:], '}') + 1
		var body added
		if err := json.Unmarshal([]byte(m[at:at+end]), &body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScan reads one page of 1,000 ids out of ten times as many, and again out of
// a hundred times; the cost of a page does not know how many there are.
func BenchmarkScan(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	few, many := benchType(), benchType()
	store := eventstore.New(rdb, wire.JSON(benchTypes(few), benchTypes(many)))
	plant(b, rdb, few, 10_000)
	plant(b, rdb, many, 100_000)
	page := func(t es.AggregateType) {
		got := 0
		for _, err := range store.Scan(b.Context(), t, "order-000003") {
			require.NoError(b, err)
			if got++; got == 1000 {
				break
			}
		}
		require.Equal(b, 1000, got)
	}
	took := turns(b, 1, func(_, _ int) { page(many) }, func(_, _ int) { page(few) })
	b.ReportMetric(float64(took[0])/float64(took[1]), "x-tenth")
}

// plant puts ids into the index without their commits.
func plant(b *testing.B, rdb redis.Cmdable, t es.AggregateType, n int) {
	b.Helper()
	for done := 0; done < n; done += 5000 {
		_, err := rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
			for i := done; i < done+5000; i++ {
				k := rediskey.EventKeys(t.ID(fmt.Sprintf("order-%08d", i)))
				p.ZAdd(b.Context(), k.IDs, redis.Z{Member: k.Member})
			}
			return nil
		})
		require.NoError(b, err)
	}
}
