package migrate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"unsafe"

	"github.com/redis/go-redis/v9"
)

// A checksum is over lengths and bytes, so that no two contents are written alike.

// ordered is the checksum of the members and scores of a ZSET, in their order.
type ordered struct {
	hash  hash.Hash
	room  [16]byte
	count int64
	bytes int64
}

func newOrdered() *ordered { return &ordered{hash: sha256.New()} }

func (o *ordered) add(member string, score float64) {
	binary.BigEndian.PutUint64(o.room[:8], uint64(len(member)))
	binary.BigEndian.PutUint64(o.room[8:], math.Float64bits(score))
	o.hash.Write(o.room[:])
	o.hash.Write(bytesOf(member))
	o.count++
	o.bytes += int64(len(member))
}

func (o *ordered) sum() string { return hex.EncodeToString(o.hash.Sum(nil)) }

// fingerprint is what stands for a text in sets, which have no order.
type fingerprint [16]byte

func fingerprintOf(text string) fingerprint {
	sum := sha256.Sum256(bytesOf(text))
	return fingerprint(sum[:16])
}

// unordered is the checksum of a set: the sum of its members.
type unordered struct {
	high, low uint64
	count     int64
	bytes     int64
}

func (u *unordered) add(text string) { u.addFingerprint(fingerprintOf(text), len(text)) }

func (u *unordered) addFingerprint(p fingerprint, size int) {
	low := u.low + binary.BigEndian.Uint64(p[8:])
	u.high += binary.BigEndian.Uint64(p[:8])
	if low < u.low {
		u.high++
	}
	u.low = low
	u.count++
	u.bytes += int64(size)
}

func (u *unordered) sum() string {
	var room [16]byte
	binary.BigEndian.PutUint64(room[:8], u.high)
	binary.BigEndian.PutUint64(room[8:], u.low)
	return hex.EncodeToString(room[:])
}

// join adds the sum of another set.
func (u *unordered) join(sum string, count int64) {
	b, err := hex.DecodeString(sum)
	if err != nil || len(b) != 16 {
		return // a set without a checksum has no members
	}
	var p fingerprint
	copy(p[:], b)
	u.addFingerprint(p, 0)
	u.count += count - 1
}

func sumOfText(text string) string {
	sum := sha256.Sum256(bytesOf(text))
	return hex.EncodeToString(sum[:])
}

func sumOfFields(fields map[string]string) (sum string, size int64) {
	var u unordered
	for field, value := range fields {
		p := fingerprintOf(string(binary.AppendUvarint(nil, uint64(len(field)))) + field + value)
		u.addFingerprint(p, len(field)+len(value))
	}
	return u.sum(), u.bytes
}

// bytesOf are the bytes of a text, not to be written to.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // read only
}

// member is a ZSET's member as text; go-redis gives it as any.
func member(z redis.Z) string {
	text, _ := z.Member.(string)
	return text
}
