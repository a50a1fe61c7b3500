package legacy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
)

var order = es.AggregateType{Context: "order-service", Name: "order"}

// The examples of every era that Wow published.
func TestRecognizePublishedKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, redisType string
		eras           legacy.Eras
		kind           legacy.Kind
	}{
		{"order-service:order:event:{order-1@(0)}", "zset", legacy.A, legacy.Events},
		{"order-service:order:event:{order-1@(0)}:req_idx", "set", legacy.A, legacy.Requests},
		{"order-service:order:snapshot:{order-1}", "string", legacy.A, legacy.Snapshot},
		{"order-service.order:es:{order-1@(0)}", "zset", legacy.B | legacy.C, legacy.Events},
		{"order-service.order:es:{order-1@(0)}:req_idx", "set", legacy.B, legacy.Requests},
		{"order-service.order:snapshot:{order-1}", "string", legacy.B, legacy.Snapshot},
		{"order-service.order:es:req_idx", "set", legacy.C, legacy.SharedRequests},
		{"order-service.order:snapshot:{order-1@(0)}", "string", legacy.B | legacy.C | legacy.D, legacy.Snapshot},
		{"{order-service.order:es:114}:order-1@(0)", "zset", legacy.D, legacy.Events},
		{"{order-service.order:es:114}:order-1@(0):req_idx", "set", legacy.D, legacy.Requests},
		{"{order-service.order:es:114}:ids", "zset", legacy.D, legacy.IDs},
		{"prepare:{alice}", "hash", legacy.A | legacy.B | legacy.C | legacy.D, legacy.Prepare},
	} {
		for _, redisType := range []string{c.redisType, ""} {
			f, ok := legacy.Recognize(c.key, redisType)
			require.True(t, ok, "%q", c.key)
			require.Equal(t, []any{c.eras, c.kind}, []any{f.Eras, f.Kind}, "%q", c.key)
			require.Equal(t, c.kind != legacy.Prepare, f.Of(order), "%q", c.key)
			require.False(t, f.Of(es.AggregateType{Context: "order-service", Name: "order2"}))
		}
		_, ok := legacy.Recognize(c.key, "stream")
		require.False(t, ok, "%q: the type decides first", c.key)
	}
	require.Equal(t, "BC", (legacy.B | legacy.C).String())
}

var ugly = []string{"a@b", "a:b", "{a}", "}{", "{}", "a}", "x:req_idx", "ids", "a:es:5}:b", "prepare:{x}", " ", "\x00", "*", "雪😀"}

func TestRecognizeUglyIDs(t *testing.T) {
	t.Parallel()
	for _, id := range ugly {
		for _, tenant := range []string{"(0)", "", "t}", "x:req_idx", "}:req_idx"} {
			for key, want := range keysOf(order, id, tenant) {
				f, ok := legacy.Recognize(key, want.redisType)
				require.True(t, ok, "%q", key)
				require.Equal(t, want.kind, f.Kind, "%q", key)
				require.NotZero(t, f.Eras&want.era, "%q is of %v", key, f.Eras)
				require.True(t, f.Of(order), "%q", key)
			}
		}
	}
}

func TestRecognizeLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	id := order.ID("a@b:{c}")
	k := rediskey.EventKeys(id)
	topic := rediskey.Event(order)
	for _, key := range []string{
		k.Stream, k.Requests, k.IDs, k.Outbox, k.Purged, rediskey.Snapshot(id), rediskey.Prepare("n", "k"), rediskey.Fence(order, 1),
		topic, rediskey.Command(order), rediskey.State(order), rediskey.DeadLetters(topic), rediskey.Retry(topic, "g"),
		rediskey.Leases(topic, "g"), rediskey.Failed(topic, "g"), rediskey.WowLease(topic, "g", "c"),
		"", "{", "{}", "{}:ids", "prepare:", "prepare:{}", "prepare:{a", "event:{a@b}", "order:event:{a@b}", ":es:{a@b}", ":es:req_idx", ":snapshot:{a}",
		"order-service.order:es:{a@b", "order-service.order:es:{a}", "order-service.order:snapshot:{}",
		"{order-service.order:es:128}:ids", "{order-service.order:es:-1}:ids", "{order-service.order:es:07}:ids", "{order-service.order:es:}:ids",
		"{order-service.order:es:1}ids", "{order-service.order:es:1}:x", "{:es:1}:ids", "{order-service.order:es:1}:",
	} {
		f, ok := legacy.Recognize(key, "")
		require.False(t, ok, "%q: %v", key, f)
	}
}

func TestSentinelsAreWhatWowAsksFor(t *testing.T) {
	t.Parallel()
	inv := es.AggregateType{Context: "inventory-service", Alias: "inv", Name: "stock_item"}
	keys := legacy.Sentinels(inv)
	require.Len(t, keys, 129)
	require.Equal(t, []string{"inv.stock_item:es:req_idx", "{inv.stock_item:es:0}:ids"}, keys[:2])
	require.Equal(t, "{inv.stock_item:es:127}:ids", keys[128])
	for _, key := range keys {
		f, ok := legacy.Recognize(key, "")
		require.True(t, ok && f.Of(inv), "%q", key)
	}
}

// The names hold what means something in a pattern; each type finds its own keys only.
func TestKEY06_ScanPatternsAreLiteral(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	scope := "KEY06-" + t.Name()
	want := map[es.AggregateType][]string{}
	for _, name := range []string{"t[ab]", "ta", "tb", "t*", "t?", "tab", `t\a`, "t^", "t[^a]", "order", "order2"} {
		for _, typ := range []es.AggregateType{{Context: scope, Name: name}, {Context: scope + ".context", Alias: scope + name, Name: "order"}} {
			for key, k := range keysOf(typ, "id*{1}", "(0)") {
				plant(t, rdb, key, k.redisType)
				want[typ] = append(want[typ], key)
			}
			if typ.Alias != "" {
				key := fmt.Sprintf("%s:order:event:{%s@(0)}", typ.Context, name)
				plant(t, rdb, key, "zset")
				want[typ] = append(want[typ], key)
			}
		}
	}
	for typ, keys := range want {
		var got []string
		for _, pattern := range legacy.ScanPatterns(typ) {
			for it := rdb.Scan(t.Context(), 0, pattern, 1000).Iterator(); it.Next(t.Context()); {
				if f, ok := legacy.Recognize(it.Val(), ""); ok && f.Of(typ) && !slices.Contains(got, it.Val()) {
					got = append(got, it.Val())
				}
			}
		}
		if typ.Alias != "" { // era A may have written the context's name, and all of these have the same
			for other, keys := range want {
				if other.Context == typ.Context && other != typ {
					got = slices.DeleteFunc(got, func(key string) bool { return slices.Contains(keys, key) })
				}
			}
		}
		require.ElementsMatch(t, keys, got, "%v", typ)
	}
}

type planted struct {
	redisType string
	era       legacy.Eras
	kind      legacy.Kind
}

func keysOf(t es.AggregateType, id, tenant string) map[string]planted {
	a, b := t.Scope()+":"+t.Name, t.String()
	identity := id + "@" + tenant
	return map[string]planted{
		a + ":event:{" + identity + "}":             {"zset", legacy.A, legacy.Events},
		a + ":event:{" + identity + "}:req_idx":     {"set", legacy.A, legacy.Requests},
		a + ":snapshot:{" + id + "}":                {"string", legacy.A, legacy.Snapshot},
		b + ":es:{" + identity + "}":                {"zset", legacy.B, legacy.Events},
		b + ":es:{" + identity + "}:req_idx":        {"set", legacy.B, legacy.Requests},
		b + ":snapshot:{" + id + "}":                {"string", legacy.B, legacy.Snapshot},
		b + ":snapshot:{" + identity + "}":          {"string", legacy.C, legacy.Snapshot},
		"{" + b + ":es:5}:" + identity:              {"zset", legacy.D, legacy.Events},
		"{" + b + ":es:5}:" + identity + ":req_idx": {"set", legacy.D, legacy.Requests},
		"{" + b + ":es:5}:ids":                      {"zset", legacy.D, legacy.IDs},
	}
}

func plant(t *testing.T, rdb redis.Cmdable, key, redisType string) {
	t.Helper()
	var err error
	switch redisType {
	case "zset":
		err = rdb.ZAdd(t.Context(), key, redis.Z{Member: "x"}).Err()
	case "set":
		err = rdb.SAdd(t.Context(), key, "x").Err()
	default:
		err = rdb.Set(t.Context(), key, "x", 0).Err()
	}
	require.NoError(t, err)
}
