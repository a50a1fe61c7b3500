package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

func TestMigrationOfTheOrderLog(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the whole log, twice")
	}
	var out bytes.Buffer
	server := redistest.Standalone(t)
	require.NoError(t, run(t.Context(), []string{"redis://" + server.Addr}, &out), "%s", &out)
	for _, line := range []string{
		"run headwater migrate audit",
		"audit: exit code 1", "copy: exit code 0", "verify: exit code 0", "finish: exit code 0",
		"counts 2000 paid orders, 4631233.45 together",
		"0 carried out now, 38685 before the migration",
	} {
		require.Contains(t, out.String(), line)
	}
	require.ErrorContains(t, run(t.Context(), []string{"redis://" + server.Addr}, &out), "wants an empty one")
}
