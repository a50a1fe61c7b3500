package migrate_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/migrate"
)

// Keys that only begin alike, or look alike, are as they were after everything.
func TestLookAlikesAreNeverTouched(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx, before := t.Context(), map[string]string{}
	stem := s.typ.String()
	for key, write := range map[string]func(key string) error{
		stem + "s:es:{a@b}":          func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "x"}).Err() },
		stem + ".x:es:{a@b}":         func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "x"}).Err() },
		"my." + stem + ":es:req_idx": func(k string) error { return s.rdb.SAdd(ctx, k, "x").Err() },
		stem + ":es:{a}":             func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "x"}).Err() },
		stem + ":es:{text@b}":        func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "no JSON"}).Err() },
		stem + ":es:{json@b}":        func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: `{"a":1}`}).Err() },
		stem + ":snapshot:{mine}":    func(k string) error { return s.rdb.Set(ctx, k, "picture", 0).Err() },
		"{" + stem + ":es:128}:a@b":  func(k string) error { return s.rdb.ZAdd(ctx, k, redis.Z{Member: "x"}).Err() },
		"prepare:{cake}":             func(k string) error { return s.rdb.HSet(ctx, k, "flour", "1").Err() },
		"prepare:cake":               func(k string) error { return s.rdb.HSet(ctx, k, "flour", "1").Err() },
		stem + ":event": func(k string) error {
			return s.rdb.XAdd(ctx, &redis.XAddArgs{Stream: k, Values: []any{"msg", "{}"}}).Err()
		},
		"v2:snapshot:{eA.eQ.eg.KDAp}": func(k string) error { return s.rdb.Set(ctx, k, "x", 0).Err() },
	} {
		require.NoError(t, write(key))
		before[key] = s.rdb.Dump(ctx, key).Val()
	}
	s.write(t, legacy.C)
	f := file(t)
	report, err := s.audit().Run(ctx, s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	require.Equal(t, map[migrate.Code]int{migrate.Foreign: 4, migrate.LookAlike: 3, migrate.OtherType: 3}, report.ByCode, "%v", report.Problems)
	s.copy(t, f)
	require.Equal(t, migrate.Clean, s.verify(t, f).Outcome())
	r := s.finish(t, f)
	require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
	for key, dump := range before {
		require.Equal(t, dump, s.rdb.Dump(ctx, key).Val(), key)
	}
	left := s.rdb.Keys(ctx, "*").Val()
	require.Len(t, left, len(before)+1+4*17-distinct(t, left), "nothing else is left but the canonical keys and the marker: %v", left)
}

// distinct is how many index keys 17 aggregates share.
func distinct(t *testing.T, keys []string) (shared int) {
	t.Helper()
	shared = 17
	for _, key := range keys {
		if strings.HasSuffix(key, "}:ids") && strings.HasPrefix(key, "{v2:") {
			shared--
		}
	}
	return shared
}
