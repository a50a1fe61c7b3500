package legacy

import (
	"strconv"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// The functions below are the keys as each era wrote them; era is one of [A] to [D].
// Nothing in them is escaped: that is why only the JSON tells whose a key is.

// EventsKey is the ZSET of the commits of id, scored by version.
func EventsKey(era Eras, id es.AggregateID) string {
	identity := id.ID + "@" + id.Tenant
	switch era {
	case A:
		return id.Type.Scope() + ":" + id.Type.Name + ":event:{" + identity + "}"
	case D:
		return tagD(id.Type, rediskey.Bucket(id.ID)) + identity
	default:
		return id.Type.String() + ":es:{" + identity + "}"
	}
}

// RequestsKey is the SET of the request ids of id; in era C, that of its whole type.
func RequestsKey(era Eras, id es.AggregateID) string {
	if era == C {
		return SharedKey(id.Type)
	}
	return EventsKey(era, id) + requestsSuffix
}

const requestsSuffix = ":req_idx"

// SharedKey is era C's SET of the request ids of all aggregates of a type.
func SharedKey(t es.AggregateType) string { return t.String() + ":es" + requestsSuffix }

// IDsKey is era D's ZSET of the aggregates in one bucket of a type, all with score 0.
func IDsKey(t es.AggregateType, bucket int) string { return tagD(t, bucket) + "ids" }

// IDsMember stands for id in era D's index.
func IDsMember(id es.AggregateID) string { return id.ID + "\x00" + id.Tenant }

// SnapshotKey is the STRING of the newest snapshot of id. Eras A and B left the tenant out.
func SnapshotKey(era Eras, id es.AggregateID) string {
	switch era {
	case A:
		return id.Type.Scope() + ":" + id.Type.Name + ":snapshot:{" + id.ID + "}"
	case B:
		return id.Type.String() + ":snapshot:{" + id.ID + "}"
	default:
		return id.Type.String() + ":snapshot:{" + id.ID + "@" + id.Tenant + "}"
	}
}

// PreparedKey is the HASH of one reservation, the same in all eras.
func PreparedKey(key string) string { return "prepare:{" + key + "}" }

func tagD(t es.AggregateType, bucket int) string {
	return "{" + t.String() + ":es:" + strconv.Itoa(bucket) + "}:"
}
