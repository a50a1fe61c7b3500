// Package recovery keeps messages from being lost when a consumer dies or a handler
// fails: leases, sweeps of dead consumers, dead letters, and trimming that spares what
// is not acknowledged.
package recovery
