package cli //nolint:testpackage // the bar shows on a terminal only

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/migrate"
)

func TestTheBarShowsHowFarAStepIs(t *testing.T) {
	t.Parallel()
	p := migrate.Progress{Step: "copy", Keys: 50, Of: 100, Bytes: 2048, Elapsed: time.Minute}
	require.Equal(t, "copy     [###############...............] 50 of 100 keys, 2.0 KiB, 1m left", bar(p))
	p.Keys, p.Of = 120, 100
	require.Contains(t, bar(p), "[##############################]", "keys that came meanwhile")
	require.Contains(t, bar(migrate.Progress{Step: "audit"}), "0 of 0 keys")
}
