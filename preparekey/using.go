package preparekey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headwater-go/headwater/es"
)

// releaseTime is how long a release may take whose caller is gone already.
const releaseTime = 5 * time.Second

// Using reserves the key and runs fn. Where fn fails or panics, the key is freed, if it
// is held with the value still; its error is kept, and is joined by that of the release.
// Where fn succeeds the key stays reserved, whatever became of ctx meanwhile. Where the
// key is held already Using returns false, and fn does not run. (Wow runs it and tells
// it so.) A process that dies in fn leaves the key reserved until the ttl has passed.
func Using[V any](ctx context.Context, keys es.PrepareKey[V], key string, value V, ttl time.Duration, fn func(context.Context) error) (held bool, err error) {
	prepared, err := prepare(ctx, keys, key, value, ttl)
	if err != nil || !prepared {
		return false, err
	}
	succeeded := false
	defer func() { // also where fn panics, or ends the goroutine
		if !succeeded {
			err = then(err, release(ctx, keys, key, value))
		}
	}()
	if err := fn(ctx); err != nil {
		return false, err
	}
	succeeded = true
	return true, nil
}

// prepare reserves the key; where it cannot be known whether it did, it frees it again.
func prepare[V any](ctx context.Context, keys es.PrepareKey[V], key string, value V, ttl time.Duration) (bool, error) {
	prepared, err := keys.Prepare(ctx, key, value, ttl)
	if errors.Is(err, es.ErrUncertain) {
		err = then(err, release(ctx, keys, key, value))
	}
	return prepared, err
}

// Move reserves newKey with newValue and then frees oldKey, which must be held with
// oldValue: where it is not, newKey is freed again and the error is an [es.ErrNotFound].
// Where newKey is held already Move returns false and changes nothing. The two keys may
// live on two servers, so between the steps both are reserved. Where the second step is
// an [es.ErrUncertain] they may be so for longer: newKey is held then, and oldKey is freed by
// RollbackFrom. The same key twice is an [es.ErrInvalid].
func Move[V any](ctx context.Context, keys es.PrepareKey[V], oldKey string, oldValue V, newKey string, newValue V, ttl time.Duration) (bool, error) {
	op := fmt.Sprintf("move %q to %q", clip(oldKey), clip(newKey))
	if oldKey == newKey {
		return false, &es.Error{Op: op, Err: es.Invalid("it is the same key")}
	}
	prepared, err := prepare(ctx, keys, newKey, newValue, ttl)
	if err != nil || !prepared {
		return false, err
	}
	// From here on a caller who goes away must not leave both keys reserved.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	freed, err := keys.RollbackFrom(ctx, oldKey, oldValue)
	switch {
	case err == nil && freed:
		return true, nil
	case errors.Is(err, es.ErrUncertain): // oldKey may be free: newKey must not be so as well
		return false, err
	case err == nil:
		err = &es.Error{Op: op, Err: fmt.Errorf("%w: the old key is not held with that value", es.ErrNotFound)}
	}
	return false, then(err, release(ctx, keys, newKey, newValue))
}

// release frees a key by its value, even where ctx is done. That somebody else has freed
// it, or that it has ended, is fine.
func release[V any](ctx context.Context, keys es.PrepareKey[V], key string, value V) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_, err := keys.RollbackFrom(ctx, key, value)
	return err
}

// then is the first error, with the one that followed from it.
func then(first, second error) error {
	if second == nil {
		return first
	}
	if first == nil { // the goroutine is ending, and nobody will see it
		return second
	}
	return fmt.Errorf("%w; then %w", first, second)
}
