package cli_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// The exit codes are 0 clean, 1 migratable, 2 blocked, 3 unfinished.
func TestMigrate(t *testing.T) {
	t.Parallel()
	rdb, url := own(t)
	target, targetURL := own(t)
	m := filepath.Join(t.TempDir(), "m")
	s := newSession(t, "migrate", url)
	s.args = map[string]string{"MANIFEST": m, "TARGET": targetURL}
	s.run("migrate", "audit")
	for _, id := range []string{"o-1", "o-2"} {
		require.NoError(t, fixture.Write(t.Context(), rdb, legacy.C, order.ID(id), 3))
	}
	s.run("migrate", "audit")
	s.once("migrate", "audit", "--manifest", "MANIFEST", "--rate", "100000")
	s.run("migrate", "copy")
	s.once("migrate", "copy", "--manifest", "MANIFEST", "--dry-run")
	require.Zero(t, rdb.Exists(t.Context(), rediskey.Stream(order.ID("o-1"))).Val())
	s.once("migrate", "copy", "--manifest", "MANIFEST", "--json")
	s.run("migrate", "rollback", "--manifest", "MANIFEST")
	s.once("migrate", "rollback", "--manifest", "MANIFEST", "--yes")
	s.once("migrate", "copy", "--manifest", "MANIFEST", "--target-redis", "TARGET")
	s.once("migrate", "verify", "--manifest", "MANIFEST", "--target-redis", "TARGET", "--json")
	s.once("migrate", "finish", "--manifest", "MANIFEST", "--target-redis", "TARGET", "--writers-stopped")
	s.once("migrate", "finish", "--manifest", "MANIFEST", "--target-redis", "TARGET", "--writers-stopped", "--yes")
	require.EqualValues(t, 3, target.ZCard(t.Context(), rediskey.Stream(order.ID("o-1"))).Val())
	require.Zero(t, rdb.DBSize(t.Context()).Val(), "nothing is left of the older layout")
	s.run("migrate", "audit")

	require.NoError(t, fixture.Write(t.Context(), rdb, legacy.C, order.ID("o-3"), 3))
	require.NoError(t, rdb.ZRemRangeByScore(t.Context(), legacy.EventsKey(legacy.C, order.ID("o-3")), "2", "2").Err())
	s.once("migrate", "audit")
	s.once("migrate", "audit", "--type", "order")
	s.once("migrate", "verify", "--manifest", "/nowhere")
	s.once("migrate", "verify", "--manifest", "MANIFEST", "--target-redis", "redis://:secret@localhost")
}
