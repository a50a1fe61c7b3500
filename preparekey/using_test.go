package preparekey_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/preparekey"
)

func TestPREP06_TheKeyIsFreedWhereTheGuardedWorkFails(t *testing.T) {
	t.Parallel()
	errWork := errors.New("work failed")
	keys, _ := open[string](t, redistest.Shared(t).Client(t))
	use := func(ctx context.Context, fn func(context.Context) error) (bool, error) {
		return preparekey.Using(ctx, keys, "bob", "u-1", 0, fn)
	}
	requireFree := func() {
		t.Helper()
		_, err := keys.GetValue(t.Context(), "bob")
		require.ErrorIs(t, err, es.ErrNotFound)
	}
	requireHeldIn := func(ctx context.Context) {
		t.Helper()
		got, err := keys.Get(ctx, "bob")
		require.NoError(t, err)
		require.Equal(t, "u-1", got)
	}

	held, err := use(t.Context(), func(ctx context.Context) error { requireHeldIn(ctx); return errWork })
	require.False(t, held)
	require.Equal(t, errWork, err, "the error as it was")
	requireFree()

	require.PanicsWithValue(t, "work", func() {
		_, _ = use(t.Context(), func(ctx context.Context) error { requireHeldIn(ctx); panic("work") })
	})
	requireFree()

	ctx, cancel := context.WithCancel(t.Context())
	held, err = use(ctx, func(ctx context.Context) error { cancel(); return ctx.Err() })
	require.False(t, held)
	require.Equal(t, context.Canceled, err)
	requireFree()

	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = use(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
	}()
	<-done
	requireFree()

	ctx, cancel = context.WithCancel(t.Context())
	isTrue(t)(use(ctx, func(context.Context) error { cancel(); return nil }))
	requireHeldIn(t.Context()) // what succeeded has succeeded

	isFalse(t)(use(t.Context(), func(context.Context) error { require.Fail(t, "it does not hold the key"); return nil }))
	requireHeldIn(t.Context())
}

func TestPREP06_OnlyTheOwnValueIsFreed(t *testing.T) {
	t.Parallel()
	errWork := errors.New("work failed")
	keys, _ := open[string](t, redistest.Shared(t).Client(t))
	_, err := preparekey.Using(t.Context(), keys, "bob", "u-1", 0, func(ctx context.Context) error {
		isTrue(t)(keys.Reprepare(ctx, "bob", "u-2", 0))
		return errWork
	})
	require.Equal(t, errWork, err)
	got, err := keys.Get(t.Context(), "bob")
	require.NoError(t, err)
	require.Equal(t, "u-2", got)
}

func TestPREP06_AReleaseThatFailsIsNamedBesideTheError(t *testing.T) {
	t.Parallel()
	errWork := errors.New("work failed")
	keys := broken{memory.NewPrepareKey[string]()}
	_, err := preparekey.Using(t.Context(), keys, "bob", "u-1", 0, func(context.Context) error { return errWork })
	require.ErrorIs(t, err, errWork)
	require.ErrorIs(t, err, es.ErrUnavailable)
	require.EqualError(t, err, "work failed; then server unavailable")

	_, err = preparekey.Move(t.Context(), keys, "bob", "u-1", "alice", "u-1", 0)
	require.EqualError(t, err, "server unavailable; then server unavailable")
	_, err = preparekey.Using(t.Context(), keys, "", "u-1", 0, func(context.Context) error { require.Fail(t, "ran"); return nil })
	require.ErrorIs(t, err, es.ErrInvalid)
}

// broken cannot free anything.
type broken struct{ es.PrepareKey[string] }

func (broken) RollbackFrom(context.Context, string, string) (bool, error) {
	return false, es.ErrUnavailable
}

func TestMove(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]es.PrepareKey[string]{
		"redis":  func() es.PrepareKey[string] { k, _ := open[string](t, redistest.SharedCluster(t).Client(t)); return k }(),
		"memory": memory.NewPrepareKey[string](),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			absent := func(key string) {
				t.Helper()
				_, err := keys.GetValue(ctx, key)
				require.ErrorIs(t, err, es.ErrNotFound)
			}
			_, err := preparekey.Move(ctx, keys, "a", "v", "a", "v", 0)
			require.ErrorIs(t, err, es.ErrInvalid)
			_, err = preparekey.Move(ctx, keys, "a", "v", "b", "v", 0)
			require.ErrorIs(t, err, es.ErrNotFound, "nothing to move")
			absent("b")
			isTrue(t)(keys.Prepare(ctx, "a", "v", 0))
			_, err = preparekey.Move(ctx, keys, "a", "x", "b", "v", 0)
			require.ErrorIs(t, err, es.ErrNotFound, "held by another")
			absent("b")
			isTrue(t)(preparekey.Move(ctx, keys, "a", "v", "b", "w", time.Hour))
			absent("a")
			got, err := keys.GetValue(ctx, "b")
			require.NoError(t, err)
			require.Equal(t, "w", got.Value)
			require.WithinDuration(t, time.Now().Add(time.Hour), got.Until, time.Minute)
			isTrue(t)(keys.Prepare(ctx, "c", "z", 0))
			isFalse(t)(preparekey.Move(ctx, keys, "b", "w", "c", "w", 0))
			_, err = preparekey.Move(ctx, keys, "b", "w", "", "w", 0)
			require.ErrorIs(t, err, es.ErrInvalid)
			value, err := keys.Get(ctx, "b")
			require.NoError(t, err)
			require.Equal(t, "w", value)
		})
	}
}

func TestMoveEndsWhereItsCallerIsGone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	keys := leaving{memory.NewPrepareKey[string](), cancel}
	_, err := keys.PrepareKey.Prepare(t.Context(), "a", "v", 0)
	require.NoError(t, err)
	isTrue(t)(preparekey.Move(ctx, keys, "a", "v", "b", "v", 0))
	_, err = keys.Get(t.Context(), "a")
	require.ErrorIs(t, err, es.ErrNotFound, "not both are held")
}

// leaving is used by a caller who goes away after the first step.
type leaving struct {
	es.PrepareKey[string]
	cancel context.CancelFunc
}

func (l leaving) Prepare(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	defer l.cancel()
	return l.PrepareKey.Prepare(ctx, key, value, ttl)
}

// uncertain reserves, and says that it does not know.
type uncertain struct{ es.PrepareKey[string] }

func (u uncertain) Prepare(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	if _, err := u.PrepareKey.Prepare(ctx, key, value, ttl); err != nil {
		return false, err
	}
	return false, es.ErrUncertain
}

func TestAReservationThatIsUncertainIsFreed(t *testing.T) {
	t.Parallel()
	keys := uncertain{memory.NewPrepareKey[string]()}
	held, err := preparekey.Using(t.Context(), keys, "alice", "u-1", 0, func(context.Context) error {
		t.Error("it ran")
		return nil
	})
	require.False(t, held)
	require.ErrorIs(t, err, es.ErrUncertain)
	_, err = keys.GetValue(t.Context(), "alice")
	require.ErrorIs(t, err, es.ErrNotFound)
}
