package doctor //nolint:testpackage // it makes what no server of a test can be

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
)

// What no server of a test can be: one with another clock, and an old one.
func TestClocksThatDifferAndOldVersionsAreFound(t *testing.T) {
	t.Parallel()
	v := &visit{}
	v.drift("a", 900*time.Millisecond, 0)
	v.drift("a", -3*time.Second, 2500*time.Millisecond)
	require.Empty(t, v.findings)
	v.drift("a", -3*time.Second, time.Millisecond)
	require.Equal(t, "HW016", v.findings[0].Code)
	for text, old := range map[string]bool{"6.0.16": true, "5.0.7": true, "6.2.0": false, "7.0.15": false, "10.1": false, "unknown": false} {
		require.Equal(t, old, older(text, 6, 2), text)
	}
}

func TestEveryPageIsWhole(t *testing.T) {
	t.Parallel()
	seen := ""
	for _, p := range Pages() {
		require.Regexp(t, `^HW\d{3}$`, p.Code)
		require.Greater(t, p.Code, seen, "in order")
		seen = p.Code
		require.NotEmpty(t, p.Title)
		require.NotEmpty(t, p.Why)
		require.NotEmpty(t, p.Mend)
		require.Equal(t, p.Title, Title(p.Code))
	}
}

func TestMemoryThatRunsOutIsFound(t *testing.T) {
	t.Parallel()
	full := node{info: inspect.Info{"maxmemory": "1000000", "used_memory": "900000"}}
	v := &visit{nodes: []node{full}, streams: []inspect.Stream{{Topic: "t", Length: 9, First: "1700000000000-0", Last: "1700086400000-0", Bytes: 100_000}}}
	v.retention(t.Context())
	require.Equal(t, "HW021", v.findings[0].Code)
	require.Equal(t, Error, v.findings[0].Level)
	require.Contains(t, v.findings[0].Text, "1.0 days")
}
