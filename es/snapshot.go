package es

import "time"

// Meta is what is known of an aggregate beside its state.
type Meta struct {
	Aggregate AggregateID
	OwnerID   string
	SpaceID   string
	// Version is that of the last commit applied; 0 = there is none.
	Version int
	// EventID is the id of the commit at Version, "" at version 0.
	EventID string
	// FirstOperator and Operator are the operators of the first and the last commit.
	FirstOperator string
	Operator      string
	// FirstEventTime and EventTime are the times of the first and the last commit.
	FirstEventTime time.Time
	EventTime      time.Time
	// SnapshotTime is when the snapshot was made; zero where none was.
	SnapshotTime time.Time
	Tags         Tags
	Deleted      bool
	// Schema is the mark of the state's shape, which the snapshot store writes and
	// compares; "" where a Kotlin node wrote the snapshot.
	Schema string
}

// Snapshot is the state of an aggregate at a version.
type Snapshot[S any] struct {
	Meta
	State S
	// Stored is the bytes that a store loaded it from, for [SnapshotStore.Replace];
	// nil for one that was not loaded. It is not saved.
	Stored []byte
}

// SnapshotStrategy says whether current should be saved as a snapshot, where saved is
// what is known of the newest one that was (Version 0 = none).
type SnapshotStrategy func(saved, current Meta) bool
