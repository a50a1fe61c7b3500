package rediskey

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/headwater-go/headwater/es"
)

// Command is the stream of a type's commands.
func Command(t es.AggregateType) string { return t.String() + ":command" }

// Event is the stream of a type's commits.
func Event(t es.AggregateType) string { return t.String() + ":event" }

// State is the stream of a type's state events.
func State(t es.AggregateType) string { return t.String() + ":state" }

// The keys below belong to one topic (a stream of any kind) and share its slot, since a
// topic holds no brace.

// DeadLetters is the stream of a topic's dead letters, for all groups.
func DeadLetters(topic string) string { return "{" + topic + "}:dlq" }

// Retry is the stream of what is replayed to one group, which no other group reads.
func Retry(topic, group string) string { return "{" + topic + "}:retry:" + group }

// Leases is the ZSET of a group's consumers, scored by their deadlines.
func Leases(topic, group string) string { return "{" + topic + "}:lease:" + group }

// Failed is the HASH of a group's failures: entry id to count, times and last error.
func Failed(topic, group string) string { return "{" + topic + "}:failed:" + group }

// WowLease is the STRING that Kotlin peers look at to see a consumer alive. Its slot is
// not the topic's.
func WowLease(topic, group, consumer string) string {
	sum := sha256.Sum256([]byte(topic + "\x00" + group + "\x00" + consumer))
	return "wow:redis:message-bus:consumer-lease:" + hex.EncodeToString(sum[:])
}

// Topics is the SET of all topics that a subscription ever began on.
func Topics() string { return "headwater:{topics}" }

// Machine is the STRING that holds the lease of one machine number.
func Machine(number int) string { return "headwater:{machine." + strconv.Itoa(number) + "}" }

// Lease is the STRING that the holder of a named lease keeps.
func Lease(name string) string { return "headwater:{lease." + name + "}" }

// Migration is the HASH in which a migration from older layouts keeps how far it is; id
// stands for its manifest.
func Migration(id string) string { return "headwater:{migrate." + id + "}" }

// Upkeep is the STRING that holds the lease of whoever keeps the topics of a name.
func Upkeep(name string) string { return "headwater:{upkeep." + name + "}" }
