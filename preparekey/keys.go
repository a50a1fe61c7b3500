// Package preparekey reserves unique keys in Redis, in Wow's layout, so that of all
// aggregates one at most has a name, an address or a number.
package preparekey

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// MaxValueBytes is the size limit of an encoded value.
const MaxValueBytes = 16 << 20

// forever is the end that Wow writes for a reservation without one; any later end means
// the same.
const forever = 148204944000000

// Keys is an [es.PrepareKey] with the values V: the reservations of one name. It is safe
// for concurrent use once its fields are set. Every error is an [es.Error]. Where V is
// [es.Raw], values are the stored bytes themselves.
//
// A key and a value are what their bytes are: "Bob" is not "bob", and one way to
// compose an "é" is not the other. Who holds a key is known by the value alone, so let
// it name one holder (a user's id, not "taken"): otherwise a late RollbackFrom frees
// another one's reservation. Where Kotlin nodes use the name too, the codec has to write
// the bytes that they write; for a struct that means the order of its fields.
//
// A call whose reply is lost may be sent again by the client, and is answered then as
// it was the first time. Where the client gives up, the call is an [es.ErrUncertain] and
// the outcome is open; a new call is a caller of its own to the store, and false where
// the first one succeeded. GetValue tells.
//
// Nothing is removed by itself when it ends: see [Keys.Sweep]. What was reserved for
// ever by a process that died is freed by RollbackFrom with its value.
type Keys[V any] struct {
	// Patience is how long a server may be loading, electing a master, moving a slot
	// or busy before a call fails as [es.ErrUnavailable]. Defaults to 5 s.
	Patience time.Duration
	// Logger hears what [Keys.Ready] could not find out. Defaults to slog.Default().
	Logger *slog.Logger

	rdb   redis.UniversalClient
	codec es.Codec
	name  string
}

// New is the reservations under a name, such as "username"; other names do not see
// them. A name that is empty, invalid UTF-8 or longer than [es.MaxIDBytes] makes every
// call an [es.ErrInvalid].
func New[V any](rdb redis.UniversalClient, codec es.Codec, name string) *Keys[V] {
	return &Keys[V]{rdb: rdb, codec: codec, name: name}
}

// Prepare implements [es.PrepareKey]. A ttl is rounded up to milliseconds.
func (k *Keys[V]) Prepare(ctx context.Context, key string, value V, ttl time.Duration) (bool, error) {
	return k.change(ctx, change[V]{op: "prepare", script: lua.PrepareKey, key: key, value: &value, ttl: ttl})
}

// Reprepare implements [es.PrepareKey]. Unlike Wow's, it creates nothing where the key
// is free.
func (k *Keys[V]) Reprepare(ctx context.Context, key string, value V, ttl time.Duration) (bool, error) {
	return k.change(ctx, change[V]{op: "reprepare", script: lua.ReprepareKey, key: key, value: &value, ttl: ttl})
}

// ReprepareFrom implements [es.PrepareKey]. Unlike Wow's, it revives nothing that has ended.
func (k *Keys[V]) ReprepareFrom(ctx context.Context, key string, old, value V, ttl time.Duration) (bool, error) {
	return k.change(ctx, change[V]{op: "reprepare", script: lua.ReprepareKey, key: key, value: &value, ttl: ttl, old: &old})
}

// Rollback implements [es.PrepareKey].
func (k *Keys[V]) Rollback(ctx context.Context, key string) (bool, error) {
	return k.change(ctx, change[V]{op: "rollback", script: lua.RollbackKey, key: key})
}

// RollbackFrom implements [es.PrepareKey]. Unlike Wow's, it is false for what has ended.
func (k *Keys[V]) RollbackFrom(ctx context.Context, key string, old V) (bool, error) {
	return k.change(ctx, change[V]{op: "rollback", script: lua.RollbackKey, key: key, old: &old})
}

// Get implements [es.PrepareKey].
func (k *Keys[V]) Get(ctx context.Context, key string) (V, error) {
	prepared, held, err := k.read(ctx, key)
	if err == nil && !held {
		err = es.ErrNotFound
	}
	if err != nil {
		var none V
		return none, k.fail("get", key, err)
	}
	return prepared.Value, nil
}

// GetValue implements [es.PrepareKey].
func (k *Keys[V]) GetValue(ctx context.Context, key string) (es.Prepared[V], error) {
	prepared, _, err := k.read(ctx, key)
	return prepared, k.fail("get", key, err)
}

// change is one call of a script that changes a reservation.
type change[V any] struct {
	op         string
	script     lua.Script
	key        string
	value, old *V // nil = none, and any
	ttl        time.Duration
}

func (k *Keys[V]) change(ctx context.Context, c change[V]) (bool, error) {
	args, err := k.args(c)
	if err != nil {
		return false, k.fail(c.op, c.key, err)
	}
	keys := []string{rediskey.Prepare(k.name, c.key)}
	if c.value == nil {
		keys = append(keys, rediskey.RolledBack(k.name, c.key))
	}
	answer, err := k.run(ctx, c.key, c.script, keys, args...)
	if err != nil {
		return false, k.fail(c.op, c.key, err)
	}
	switch answer {
	case "done":
		return true, nil
	case "held", "free", "other":
		return false, nil
	case "corrupt":
		err = es.Corrupt("the hash is no reservation")
	default:
		err = fmt.Errorf("unexpected answer %v", answer)
	}
	return false, k.fail(c.op, c.key, err)
}

// args are those that all scripts share: what is written, the token, what must be held.
func (k *Keys[V]) args(c change[V]) (args []any, err error) {
	if c.value != nil {
		data, err := k.encode(*c.value)
		if err != nil {
			return nil, err
		}
		ttl, err := milliseconds(c.ttl)
		if err != nil {
			return nil, err
		}
		args = append(args, data, ttl)
	}
	args = append(args, rand.Text())
	if c.old != nil {
		data, err := k.encode(*c.old)
		if err != nil {
			return nil, err
		}
		args = append(args, data)
	}
	return args, nil
}

func (k *Keys[V]) encode(value V) ([]byte, error) {
	data, err := k.codec.EncodeValue(value)
	if err == nil && len(data) > MaxValueBytes {
		err = fmt.Errorf("%w: value has %d bytes, more than %d", es.ErrTooLarge, len(data), MaxValueBytes)
	}
	return data, err
}

// milliseconds is "" for ever.
func milliseconds(ttl time.Duration) (string, error) {
	switch {
	case ttl < 0:
		return "", es.Invalid("ttl %s is negative", ttl)
	case ttl == 0:
		return "", nil
	}
	return strconv.FormatInt((int64(ttl)-1)/int64(time.Millisecond)+1, 10), nil
}

func (k *Keys[V]) read(ctx context.Context, key string) (prepared es.Prepared[V], held bool, err error) {
	answer, err := k.run(ctx, key, lua.ReadKey, []string{rediskey.Prepare(k.name, key)})
	if err != nil {
		return prepared, false, err
	}
	state, value, ttlAt := reservation(answer)
	switch state {
	case "held", "ended":
	case "free":
		return prepared, false, es.ErrNotFound
	case "corrupt":
		return prepared, false, es.Corrupt("the hash is no reservation")
	default:
		return prepared, false, fmt.Errorf("unexpected answer %v", answer)
	}
	ms, err := strconv.ParseInt(ttlAt, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // beyond the range is nearer to it than to anything else
		return prepared, false, es.Corrupt("ttlAt: %w", err)
	}
	if ms < forever {
		prepared.Until = time.UnixMilli(ms).UTC()
	}
	if err := k.codec.DecodeValue([]byte(value), &prepared.Value); err != nil {
		return es.Prepared[V]{}, false, err
	}
	return prepared, state == "held", nil
}

// reservation takes an answer of read_key apart; its state is "" for any other answer.
func reservation(answer any) (state, value, ttlAt string) {
	parts, _ := answer.([]any)
	texts := make([]string, 3)
	for i := range min(len(parts), len(texts)) {
		texts[i], _ = parts[i].(string)
	}
	return texts[0], texts[1], texts[2]
}

// run runs a script that may be sent again, by the client or by [redisrun.Do].
func (k *Keys[V]) run(ctx context.Context, key string, script lua.Script, keys []string, args ...any) (any, error) {
	if err := check("name", k.name); err != nil {
		return nil, err
	}
	if err := check("key", key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // nothing was sent, so nothing is uncertain
		return nil, err
	}
	return redisrun.Do(ctx, k.Patience, func() (any, error) { return script.Run(ctx, k.rdb, keys, args...) })
}
