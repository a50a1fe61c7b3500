package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/headwater-go/headwater/es"
)

// PrepareKey is an [es.PrepareKey]. Values are kept and compared as JSON. What has
// ended stays until its key is prepared again.
type PrepareKey[V any] struct {
	mu   sync.Mutex
	held map[string]reservation
}

type reservation struct {
	value []byte
	// until is in milliseconds of Unix time, 0 = for ever.
	until int64
}

// NewPrepareKey holds no key. Each one is a name of its own.
func NewPrepareKey[V any]() *PrepareKey[V] {
	return &PrepareKey[V]{held: map[string]reservation{}}
}

// Prepare implements [es.PrepareKey]. A ttl is rounded up to milliseconds.
func (p *PrepareKey[V]) Prepare(ctx context.Context, key string, value V, ttl time.Duration) (bool, error) {
	return p.change(ctx, "prepare", key, nil, &value, ttl)
}

// Reprepare implements [es.PrepareKey].
func (p *PrepareKey[V]) Reprepare(ctx context.Context, key string, value V, ttl time.Duration) (bool, error) {
	return p.change(ctx, "reprepare", key, nil, &value, ttl)
}

// ReprepareFrom implements [es.PrepareKey].
func (p *PrepareKey[V]) ReprepareFrom(ctx context.Context, key string, old, value V, ttl time.Duration) (bool, error) {
	return p.change(ctx, "reprepare", key, &old, &value, ttl)
}

// Rollback implements [es.PrepareKey].
func (p *PrepareKey[V]) Rollback(ctx context.Context, key string) (bool, error) {
	return p.change(ctx, "rollback", key, nil, nil, 0)
}

// RollbackFrom implements [es.PrepareKey].
func (p *PrepareKey[V]) RollbackFrom(ctx context.Context, key string, old V) (bool, error) {
	return p.change(ctx, "rollback", key, &old, nil, 0)
}

// change takes a key that is free ("prepare") or changes one that is held, with the
// value old where there is one. No new value = the key becomes free.
func (p *PrepareKey[V]) change(ctx context.Context, op, key string, old, value *V, ttl time.Duration) (bool, error) {
	oldData, err := encodeValue(ctx, key, old)
	if err != nil {
		return false, &es.Error{Op: op, Err: err}
	}
	data, err := encodeValue(ctx, key, value)
	if err == nil && ttl < 0 {
		err = es.Invalid("ttl %s is negative", ttl)
	}
	if err != nil {
		return false, &es.Error{Op: op, Err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now().UnixMilli()
	r, known := p.held[key]
	if held := known && !r.ended(now); held == (op == "prepare") {
		return false, nil
	}
	if old != nil && !bytes.Equal(r.value, oldData) {
		return false, nil
	}
	if value == nil {
		delete(p.held, key)
		return true, nil
	}
	p.held[key] = reservation{value: data, until: end(now, ttl)}
	return true, nil
}

// ended follows the one rule for all operations: from the very millisecond of its end on.
func (r reservation) ended(now int64) bool { return r.until != 0 && r.until <= now }

func end(now int64, ttl time.Duration) int64 {
	if ttl == 0 {
		return 0
	}
	ms := ttl.Milliseconds()
	if ttl%time.Millisecond > 0 {
		ms++
	}
	return now + ms
}

// Get implements [es.PrepareKey].
func (p *PrepareKey[V]) Get(ctx context.Context, key string) (V, error) {
	prepared, err := p.find(ctx, key, false)
	return prepared.Value, err
}

// GetValue implements [es.PrepareKey].
func (p *PrepareKey[V]) GetValue(ctx context.Context, key string) (es.Prepared[V], error) {
	return p.find(ctx, key, true)
}

func (p *PrepareKey[V]) find(ctx context.Context, key string, evenEnded bool) (es.Prepared[V], error) {
	var prepared es.Prepared[V]
	if _, err := encodeValue[V](ctx, key, nil); err != nil {
		return prepared, &es.Error{Op: "get prepared", Err: err}
	}
	p.mu.Lock()
	r, known := p.held[key]
	p.mu.Unlock()
	if !known || (!evenEnded && r.ended(time.Now().UnixMilli())) {
		return prepared, &es.Error{Op: "get prepared", Err: es.ErrNotFound}
	}
	if err := json.Unmarshal(r.value, &prepared.Value); err != nil {
		return es.Prepared[V]{}, &es.Error{Op: "get prepared", Err: es.Corrupt("value: %w", err)}
	}
	if r.until != 0 {
		prepared.Until = time.UnixMilli(r.until).UTC()
	}
	return prepared, nil
}

// encodeValue checks the key, and encodes the value where there is one.
func encodeValue[V any](ctx context.Context, key string, value *V) ([]byte, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case key == "":
		return nil, es.Invalid("key is empty")
	case len(key) > es.MaxIDBytes:
		return nil, es.Invalid("key has %d bytes, more than %d", len(key), es.MaxIDBytes)
	case !utf8.ValidString(key):
		return nil, es.Invalid("key %q is not valid UTF-8", key)
	case value == nil:
		return nil, nil
	}
	return encode(*value)
}
