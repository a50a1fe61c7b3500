package snapshot_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/snapshot"
)

// at is what is known of an aggregate with a commit each minute, the first at minute 1.
func at(version int) es.Meta {
	m := es.Meta{Version: version}
	if version > 0 {
		m.FirstEventTime = epoch.Add(time.Minute)
		m.EventTime = epoch.Add(time.Duration(version) * time.Minute)
	}
	return m
}

// saves is which of the versions 1 to 10 are saved, where each save becomes known.
func saves(s es.SnapshotStrategy) (versions []int) {
	saved := es.Meta{}
	for v := 1; v <= 10; v++ {
		if s(saved, at(v)) {
			saved = at(v)
			versions = append(versions, v)
		}
	}
	return versions
}

func TestStrategies(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, saves(snapshot.EveryCommit()))
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, saves(snapshot.EveryVersions(1)))
	require.Equal(t, []int{3, 6, 9}, saves(snapshot.EveryVersions(3)))
	require.Empty(t, saves(snapshot.EveryVersions(11)))
	require.Equal(t, []int{4, 7, 10}, saves(snapshot.OlderThan(3*time.Minute)), "three minutes after the first commit, then after each save")
	require.Equal(t, []int{4, 7, 10}, saves(snapshot.OlderThan(2*time.Minute+time.Second)))
	require.Empty(t, saves(snapshot.OlderThan(time.Hour)))
	require.Empty(t, saves(snapshot.Off()))
}

func TestCommitsInJumpsAreSavedWhereAVersionWasJumpedOver(t *testing.T) {
	t.Parallel()
	require.True(t, snapshot.EveryVersions(50)(at(40), at(95)))
	require.False(t, snapshot.EveryVersions(50)(at(40), at(89)))
}

func TestNothingNewIsNotSavedAgain(t *testing.T) {
	t.Parallel()
	for _, s := range []es.SnapshotStrategy{
		snapshot.EveryCommit(), snapshot.EveryVersions(1), snapshot.OlderThan(time.Nanosecond), snapshot.Off(),
	} {
		require.False(t, s(at(5), at(5)))
		require.False(t, s(at(6), at(5)), "another node saved a newer one")
		require.False(t, s(at(0), at(0)))
	}
}

func TestStrategyThatSavesNeverOrAlwaysByMistakePanics(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, "snapshot every 0 versions", func() { snapshot.EveryVersions(0) })
	require.Panics(t, func() { snapshot.EveryVersions(-5) })
	require.PanicsWithValue(t, "snapshot older than 0s", func() { snapshot.OlderThan(0) })
	require.Panics(t, func() { snapshot.OlderThan(-time.Second) })
}
