// Package redisstream is the one engine that carries messages of any kind over Redis
// streams: it publishes, reads in batches, keeps the messages of one key in order while
// others go on, acknowledges, retries, recovers what dead consumers left, and buries
// what cannot be handled. The buses are its faces.
package redisstream
