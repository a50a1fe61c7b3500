// Package soak holds the buses to their promises while everything around them breaks:
// numbered messages are sent, worker processes and servers are killed, paused, cut and
// restarted at random, and at the end every number is looked for. `make soak` runs it.
package soak
