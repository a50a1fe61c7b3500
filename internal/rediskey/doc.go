// Package rediskey makes every key there is, and reads back those that carry an id.
// The layout is Wow's canonical v2, byte for byte, with the keys that only Headwater
// has beside it.
//
// What goes in was checked by Validate ([es.AggregateID], [es.AggregateType]): on text
// that is no UTF-8 the functions stay total and their results mean nothing.
package rediskey
