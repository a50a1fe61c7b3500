// Package memory is every interface of es in memory, for users' tests and first steps.
//
// Nothing survives the process and nothing is shared between processes. What comes in
// and goes out is copied, but for the bodies of commands and events and the states of
// state events: those are shared, and must be treated as immutable. Everything here is
// safe for concurrent use; the answers are those of the Redis packages.
package memory
