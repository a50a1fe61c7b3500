package eventstore_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	kernel "github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

type putIn struct{ added }

func (putIn) CommandName() string { return "add" }

type stock struct{ Count int64 }

func stockDecider(t es.AggregateType) kernel.Decider[stock] {
	return kernel.Decider[stock]{
		Type: t,
		Decide: func(_ stock, c es.Command) (es.Events, error) {
			return es.Events{c.Body.(putIn).added}, nil
		},
		Evolve: func(s stock, e es.Event) stock {
			if a, ok := e.Body.(added); ok {
				s.Count += a.Count
			}
			return s
		},
	}
}

// BenchmarkHandle holds a command on an aggregate of one commit (load, decide, append)
// against the two bare commands that it takes, with the same bytes.
func BenchmarkHandle(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	for _, workers := range []int{1, 50} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.ReportAllocs()
			typ := benchType()
			codec := wire.JSON(benchTypes(typ))
			store := eventstore.New(rdb, codec)
			repository := &kernel.Repository[stock]{Decider: stockDecider(typ), Store: store}
			id := func(side string, n int) es.AggregateID { return typ.ID(fmt.Sprintf("%s-order-%08d", side, n)) }
			bares := make([]bare, b.N)
			for n := range b.N {
				for _, side := range []string{"bare", "ours"} {
					_, err := store.Append(b.Context(), es.AppendOptions{}, benchCommit(id(side, n), 1))
					require.NoError(b, err)
				}
				bares[n] = bareAppend(b, codec, benchCommit(id("bare", n), 2))
			}
			body := putIn{added{SKU: "A-1", Count: 2, Note: "leave it at the door"}}
			took, allocs := measure(b, workers,
				func(_, n int) {
					if _, err := repository.Handle(b.Context(), es.NewCommand(id("ours", n), body)); err != nil {
						b.Error(err)
					}
				},
				func(_, n int) {
					by := &redis.ZRangeBy{Min: "1", Max: "+inf", Count: 100}
					if got, err := rdb.ZRangeByScore(b.Context(), bares[n].keys[0], by).Result(); err != nil || len(got) != 1 { //nolint:staticcheck // what the store sends
						b.Error(got, err)
					}
					bares[n].send(b, rdb)
				})
			b.ReportMetric(float64(took[0])/float64(took[1]), "x-bare")
			b.ReportMetric(allocs[0], "allocs/command")
			b.ReportMetric(allocs[1], "allocs/bare")
		})
	}
}

// BenchmarkLoadAfterSnapshot loads an aggregate whose newest commit a snapshot covers:
// its cost does not know the history before it.
func BenchmarkLoadAfterSnapshot(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	typ := benchType()
	codec := wire.JSON(benchTypes(typ))
	store, snapshots := eventstore.New(rdb, codec), snapshot.New[stock](rdb, codec)
	repository := &kernel.Repository[stock]{Decider: stockDecider(typ), Store: store, Snapshots: snapshots}
	at := func(commits int) es.AggregateID {
		id := typ.ID(fmt.Sprintf("history-%d", commits))
		fillLong(b, store, id, commits)
		s, err := repository.Load(b.Context(), id)
		require.NoError(b, err)
		require.NoError(b, snapshots.Save(b.Context(), s))
		require.Equal(b, int64(1), rdb.Exists(b.Context(), rediskey.Snapshot(id)).Val())
		return id
	}
	short, long := at(10), at(10_000)
	load := func(id es.AggregateID) func(int, int) {
		return func(int, int) {
			if _, err := repository.Load(b.Context(), id); err != nil {
				b.Error(err)
			}
		}
	}
	took := turns(b, 1, load(long), load(short))
	b.ReportMetric(float64(took[0])/float64(took[1]), "x-short")
}
