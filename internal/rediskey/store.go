package rediskey

import (
	"encoding/base64"
	"strconv"

	"github.com/headwater-go/headwater/es"
)

// Events are the keys, and the members of the ids index, of one aggregate. All keys
// share one hash tag.
type Events struct {
	// Stream is the ZSET of commits, scored by version.
	Stream string
	// Requests is the SET of request ids.
	Requests string
	// IDs is the ZSET of the aggregates in the bucket, all with score 0.
	IDs string
	// Outbox is the ZSET of notes: Identity, scored by the first unpublished version.
	Outbox string
	// Purged is the HASH of tombstones: Member to the version that was purged.
	Purged string
	// Identity names the aggregate within its type; see [ParseIdentity].
	Identity string
	// Member stands for the aggregate in IDs; see [ParseMember].
	Member string
}

// EventKeys are the keys of id, in one piece of memory.
func EventKeys(id es.AggregateID) Events {
	var room [512]byte
	b := room[:0]
	bucket := Bucket(id.ID)

	b = appendTag(b, id.Type, bucket)
	tagEnd := len(b)
	b = appendIdentity(append(b, ':'), id)
	streamEnd := len(b)
	b = append(b, ":req_idx"...)
	requestsEnd := len(b)
	b = append(append(b, b[:tagEnd]...), ":ids"...)
	idsEnd := len(b)
	b = append(append(b, b[:tagEnd]...), ":outbox"...)
	outboxEnd := len(b)
	b = append(append(b, b[:tagEnd]...), ":purged"...)
	purgedEnd := len(b)
	b = appendBase64(append(appendHex(b, id.ID), '.'), id.Tenant)

	s := string(b)
	return Events{
		Stream:   s[:streamEnd],
		Requests: s[:requestsEnd],
		IDs:      s[requestsEnd:idsEnd],
		Outbox:   s[idsEnd:outboxEnd],
		Purged:   s[outboxEnd:purgedEnd],
		Identity: s[tagEnd+1 : streamEnd],
		Member:   s[purgedEnd:],
	}
}

// Stream is [Events].Stream alone.
func Stream(id es.AggregateID) string {
	var room [256]byte
	return string(appendIdentity(append(appendTag(room[:0], id.Type, Bucket(id.ID)), ':'), id))
}

// Requests is [Events].Requests alone.
func Requests(id es.AggregateID) string { return Stream(id) + ":req_idx" }

// Index is the key of [Events].IDs for one bucket of a type.
func Index(t es.AggregateType, bucket int) string { return bucketKey(t, bucket, ":ids") }

// Outbox is the key of [Events].Outbox for one bucket of a type.
func Outbox(t es.AggregateType, bucket int) string { return bucketKey(t, bucket, ":outbox") }

// Purged is the key of [Events].Purged for one bucket of a type.
func Purged(t es.AggregateType, bucket int) string { return bucketKey(t, bucket, ":purged") }

// Fence is the key of the token below which appends to a bucket are refused.
func Fence(t es.AggregateType, bucket int) string { return bucketKey(t, bucket, ":fence") }

// Snapshot is the key of the newest snapshot, a STRING. Its slot is not that of the events.
func Snapshot(id es.AggregateID) string {
	var room [256]byte
	b := append(appendScope(append(room[:0], "v2:snapshot:{"...), id.Type), '.')
	return string(append(appendIdentity(b, id), '}'))
}

// Prepare is the key of one reservation, a HASH. Neither part may be empty.
func Prepare(name, key string) string {
	var room [256]byte
	return string(append(appendBase64(appendPrepare(room[:0], name), key), '}'))
}

// RolledBack is the key of the token of the call that freed a reservation last, a
// STRING in the reservation's slot.
func RolledBack(name, key string) string { return Prepare(name, key) + ":rolled" }

// PreparePrefix begins the keys of all reservations of one name, which end in a brace,
// and those of [RolledBack]. It holds no character that means something to SCAN.
func PreparePrefix(name string) string { return string(appendPrepare(nil, name)) }

func appendPrepare(b []byte, name string) []byte {
	return append(appendBase64(append(b, "v2:prepare:{"...), name), '.')
}

func bucketKey(t es.AggregateType, bucket int, suffix string) string {
	var room [128]byte
	return string(append(appendTag(room[:0], t, bucket), suffix...))
}

func appendTag(b []byte, t es.AggregateType, bucket int) []byte {
	b = append(appendScope(append(b, "{v2:es:"...), t), ':')
	return append(strconv.AppendInt(b, int64(bucket), 10), '}')
}

func appendScope(b []byte, t es.AggregateType) []byte {
	return appendBase64(append(appendBase64(b, t.Scope()), '.'), t.Name)
}

func appendIdentity(b []byte, id es.AggregateID) []byte {
	return appendBase64(append(appendBase64(b, id.ID), '.'), id.Tenant)
}

func appendBase64(b []byte, s string) []byte {
	return base64.RawURLEncoding.AppendEncode(b, []byte(s))
}
