package snapshot

import (
	"fmt"
	"time"

	"github.com/headwater-go/headwater/es"
)

// EveryCommit saves after each commit, as Wow does by default.
func EveryCommit() es.SnapshotStrategy {
	return func(saved, current es.Meta) bool { return current.Version > saved.Version }
}

// EveryVersions saves once the aggregate is n versions past its saved snapshot, or past
// nothing. It panics where n is not positive.
func EveryVersions(n int) es.SnapshotStrategy {
	if n < 1 {
		panic(fmt.Sprintf("snapshot every %d versions", n))
	}
	return func(saved, current es.Meta) bool { return current.Version-saved.Version >= n }
}

// OlderThan saves once the newest commit is d or more later than the commit that the
// saved snapshot ends with, or than the first commit where none is saved. It compares
// times of commits only and reads no clock, so an aggregate that gets no commits gets
// no snapshots, and a replay decides as the first run did. It panics where d is not
// positive.
func OlderThan(d time.Duration) es.SnapshotStrategy {
	if d <= 0 {
		panic(fmt.Sprintf("snapshot older than %s", d))
	}
	return func(saved, current es.Meta) bool {
		since := saved.EventTime
		if saved.Version == 0 {
			since = current.FirstEventTime
		}
		return current.Version > saved.Version && current.EventTime.Sub(since) >= d
	}
}

// Off saves nothing.
func Off() es.SnapshotStrategy {
	return func(_, _ es.Meta) bool { return false }
}
