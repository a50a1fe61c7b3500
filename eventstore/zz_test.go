package eventstore_test

import (
	"testing"
	"time"
	"sort"

	"github.com/redis/go-redis/v9"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

func BenchmarkZZ(b *testing.B) {
	rdb := redistest.Shared(b).Client(b)
	typ := benchType()
	codec := wire.JSON(benchTypes(typ))
	store := eventstore.New(rdb, codec)
	id := typ.ID("long")
	fillLong(b, store, id, 1000)
	key := rediskey.EventKeys(id).Stream
	med := func(f func()) time.Duration {
		var d []time.Duration
		for range 300 {
			t := time.Now(); f(); d = append(d, time.Since(t))
		}
		sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
		return d[len(d)/2]
	}
	members, _ := rdb.ZRangeByScore(b.Context(), key, &redis.ZRangeBy{Min: "1", Max: "+inf"}).Result()
	b.Logf("fetch100 %v", med(func() { rdb.ZRangeByScore(b.Context(), key, &redis.ZRangeBy{Min: "1", Max: "+inf", Count: 100}).Result() }))
	b.Logf("fetch900 %v", med(func() { rdb.ZRangeByScore(b.Context(), key, &redis.ZRangeBy{Min: "101", Max: "+inf", Count: 1000}).Result() }))
	b.Logf("fetch1000 %v", med(func() { rdb.ZRangeByScore(b.Context(), key, &redis.ZRangeBy{Min: "1", Max: "+inf"}).Result() }))
	b.Logf("decode1000 %v", med(func() { for _, m := range members { codec.DecodeCommit([]byte(m)) } }))
	b.Logf("bare %v", med(func() { bareLoad(b, rdb, key, 1000) }))
	b.Logf("load %v", med(func() { for _, err := range store.Load(b.Context(), id, es.Versions{}) { if err != nil { b.Fatal(err) } } }))
	b.Logf("bare %v", med(func() { bareLoad(b, rdb, key, 1000) }))
}
