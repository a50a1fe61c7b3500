// Package es holds the words of Headwater: commands, events, commits, snapshots,
// ids, errors, and the small interfaces that the other packages implement. It does
// no I/O, and every package may import it.
package es
