package estest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// TestPrepareKey tests what [es.PrepareKey] promises, with texts and with objects as
// values. Every call of newText and newObject makes one under another name.
func TestPrepareKey[T es.PrepareKey[string], O es.PrepareKey[Holder]](t *testing.T,
	newText func(t *testing.T) T, newObject func(t *testing.T) O,
) {
	texts := func(t *testing.T) es.PrepareKey[string] { return newText(t) }
	t.Run("texts", func(t *testing.T) {
		runPrepareChecks(t, texts, func(n int) string { return fmt.Sprintf("value %d", n) })
	})
	t.Run("objects", func(t *testing.T) {
		open := func(t *testing.T) es.PrepareKey[Holder] { return newObject(t) }
		runPrepareChecks(t, open, func(n int) Holder { return Holder{Value: fmt.Sprintf("<%d>", n), PrepareTime: 1<<53 + int64(n)} })
	})
	for name, run := range map[string]func(*testing.T, func(*testing.T) es.PrepareKey[string]){
		"KEY-04 PREP-12 odd keys":           prepareOddKeys,
		"PREP-12 odd values":                prepareOddValues,
		"names are worlds of their own":     prepareNames,
		"KEY-03 keys that cannot be":        prepareBadKeys,
		"JSON-05 values that cannot be":     prepareBadValues,
		"PREP-10 ends that cannot be":       prepareBadEnds,
		"a closed context":                  prepareContext,
		"PREP-13 one of many prepares":      prepareRace,
		"PREP-13 one of many reprepares":    reprepareRace,
		"PREP-13 one of many rollbacks":     rollbackRace,
		"PREP-13 one of many after the end": prepareAfterEndRace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, texts)
		})
	}
}

// prepareCheck is a test that knows n different values of any type.
type prepareCheck[V any] func(t *testing.T, p es.PrepareKey[V], value func(n int) V)

func runPrepareChecks[V any](t *testing.T, open func(t *testing.T) es.PrepareKey[V], value func(n int) V) {
	for name, run := range map[string]prepareCheck[V]{
		"a life":                                prepareLife[V],
		"values are compared":                   prepareCompares[V],
		"PREP-05 a free key is not reprepared":  prepareFree[V],
		"PREP-01 for ever":                      prepareForEver[V],
		"PREP-02 what has ended is free":        prepareEnds[V],
		"a reservation can be given a new end":  prepareNewEnd[V],
		"PREP-08 the value is the one identity": prepareIdentity[V],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, open(t), value)
		})
	}
}

// isTrue and isFalse take the answer of an operation as it is.
func isTrue(t *testing.T) func(bool, error) {
	return func(done bool, err error) {
		t.Helper()
		require.NoError(t, err)
		require.True(t, done)
	}
}

func isFalse(t *testing.T) func(bool, error) {
	return func(done bool, err error) {
		t.Helper()
		require.NoError(t, err)
		require.False(t, done)
	}
}

func requireHeld[V any](t *testing.T, p es.PrepareKey[V], key string, want V) {
	t.Helper()
	got, err := p.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func requireFree[V any](t *testing.T, p es.PrepareKey[V], key string) {
	t.Helper()
	_, err := p.Get(t.Context(), key)
	requireAt(t, err, es.ErrNotFound, es.Error{})
}

// requireAbsent says that there is not even a reservation that has ended.
func requireAbsent[V any](t *testing.T, p es.PrepareKey[V], key string) {
	t.Helper()
	requireFree(t, p, key)
	_, err := p.GetValue(t.Context(), key)
	requireAt(t, err, es.ErrNotFound, es.Error{})
}

func prepareLife[V any](t *testing.T, p es.PrepareKey[V], value func(int) V) {
	ctx := t.Context()
	requireAbsent(t, p, "k")
	for range 2 {
		isTrue(t)(p.Prepare(ctx, "k", value(1), 0))
		isFalse(t)(p.Prepare(ctx, "k", value(1), 0))
		isFalse(t)(p.Prepare(ctx, "k", value(2), time.Hour))
		requireHeld(t, p, "k", value(1))
		isTrue(t)(p.Rollback(ctx, "k"))
		requireAbsent(t, p, "k")
		isFalse(t)(p.Rollback(ctx, "k"))
	}
	isTrue(t)(p.Prepare(ctx, "k", value(1), 0))
	isTrue(t)(p.ReprepareFrom(ctx, "k", value(1), value(2), 0))
	requireHeld(t, p, "k", value(2))
	isTrue(t)(p.Rollback(ctx, "k"))
	requireAbsent(t, p, "k")
}

func prepareCompares[V any](t *testing.T, p es.PrepareKey[V], value func(int) V) {
	ctx := t.Context()
	isTrue(t)(p.Prepare(ctx, "k", value(1), 0))
	isTrue(t)(p.ReprepareFrom(ctx, "k", value(1), value(2), 0))
	isFalse(t)(p.ReprepareFrom(ctx, "k", value(1), value(3), 0))
	requireHeld(t, p, "k", value(2))
	isTrue(t)(p.Reprepare(ctx, "k", value(3), 0))
	requireHeld(t, p, "k", value(3))
	isTrue(t)(p.ReprepareFrom(ctx, "k", value(3), value(3), 0))
	isFalse(t)(p.RollbackFrom(ctx, "k", value(2)))
	requireHeld(t, p, "k", value(3))
	isTrue(t)(p.RollbackFrom(ctx, "k", value(3)))
	isFalse(t)(p.RollbackFrom(ctx, "k", value(3)))
	requireAbsent(t, p, "k")
}

func prepareFree[V any](t *testing.T, p es.PrepareKey[V], value func(int) V) {
	ctx := t.Context()
	isFalse(t)(p.Reprepare(ctx, "k", value(1), 0))
	isFalse(t)(p.Reprepare(ctx, "k", value(1), time.Hour))
	isFalse(t)(p.ReprepareFrom(ctx, "k", value(1), value(2), 0))
	isFalse(t)(p.Rollback(ctx, "k"))
	isFalse(t)(p.RollbackFrom(ctx, "k", value(1)))
	requireAbsent(t, p, "k")
}

func prepareForEver[V any](t *testing.T, p es.PrepareKey[V], value func(int) V) {
	ctx := t.Context()
	isTrue(t)(p.Prepare(ctx, "k", value(1), 0))
	forEver := es.Prepared[V]{Value: value(1)}
	got, err := p.GetValue(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, forEver, got, "without an end")
	isTrue(t)(p.Reprepare(ctx, "k", value(1), time.Hour))
	isTrue(t)(p.ReprepareFrom(ctx, "k", value(1), value(1), 0))
	got, err = p.GetValue(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, forEver, got)
	isTrue(t)(p.Prepare(ctx, "far", value(2), 1<<63-1))
	requireHeld(t, p, "far", value(2))
}

// ended prepares a key for a moment and waits for its end, which is not before its time.
func ended[V any](t *testing.T, p es.PrepareKey[V], key string, value V) {
	t.Helper()
	const ttl = 60 * time.Millisecond
	before := time.Now()
	isTrue(t)(p.Prepare(t.Context(), key, value, ttl))
	awaitEnd(t, p, key)
	require.GreaterOrEqual(t, time.Since(before), ttl-2*time.Millisecond, "it ended too early")
}

func awaitEnd[V any](t *testing.T, p es.PrepareKey[V], key string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := p.Get(t.Context(), key)
		return isAny(err, []error{es.ErrNotFound})
	}, 5*time.Second, 5*time.Millisecond, "the reservation never ends")
}

func prepareEnds[V any](t *testing.T, p es.PrepareKey[V], value func(int) V) {
	ctx := t.Context()
	ended(t, p, "k", value(1))
	isFalse(t)(p.Reprepare(ctx, "k", value(2), 0))
	isFalse(t)(p.ReprepareFrom(ctx, "k", value(1), value(2), 0))
	isFalse(t)(p.Rollback(ctx, "k"))
	isFalse(t)(p.RollbackFrom(ctx, "k", value(1)))
	got, err := p.GetValue(ctx, "k")
	require.NoError(t, err, "it is there until it is swept")
	require.Equal(t, value(1), got.Value)
	require.False(t, got.Until.IsZero())
	requireFree(t, p, "k")
	isTrue(t)(p.Prepare(ctx, "k", value(2), 0))
	requireHeld(t, p, "k", value(2))
	isFalse(t)(p.RollbackFrom(ctx, "k", value(1)))
	requireHeld(t, p, "k", value(2))
}

func prepareNewEnd[V any](t *testing.T, p es.PrepareKey[V], value func(int) V) {
	ctx := t.Context()
	before := time.Now()
	isTrue(t)(p.Prepare(ctx, "k", value(1), time.Hour))
	got, err := p.GetValue(ctx, "k")
	require.NoError(t, err)
	require.WithinDuration(t, before.Add(time.Hour), got.Until, time.Minute)
	isTrue(t)(p.Reprepare(ctx, "k", value(1), 2*time.Hour))
	later, err := p.GetValue(ctx, "k")
	require.NoError(t, err)
	require.WithinDuration(t, before.Add(2*time.Hour), later.Until, time.Minute)
	isTrue(t)(p.ReprepareFrom(ctx, "k", value(1), value(2), 30*time.Millisecond))
	awaitEnd(t, p, "k")
	isTrue(t)(p.Prepare(ctx, "k", value(3), 0))
}

// prepareIdentity is the policy: who holds a key is told by the value, and by nothing else.
func prepareIdentity[V any](t *testing.T, p es.PrepareKey[V], value func(int) V) {
	ended(t, p, "k", value(1))
	isTrue(t)(p.Prepare(t.Context(), "k", value(1), 0))
	isTrue(t)(p.RollbackFrom(t.Context(), "k", value(1)))
}
