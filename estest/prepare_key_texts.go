package estest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// newTexts makes an [es.PrepareKey] under a name of its own.
type newTexts = func(t *testing.T) es.PrepareKey[string]

func prepareOddKeys(t *testing.T, open newTexts) {
	p, ctx := open(t), t.Context()
	keys := append(oddIDs(), "Bob", "bob", "bob ", "É", "E\u0301")
	for i, key := range keys {
		isTrue(t)(p.Prepare(ctx, key, fmt.Sprint(i), 0))
		isFalse(t)(p.Prepare(ctx, key, "x", 0))
	}
	for i, key := range keys {
		requireHeld(t, p, key, fmt.Sprint(i))
		isTrue(t)(p.ReprepareFrom(ctx, key, fmt.Sprint(i), key, 0))
	}
	for _, key := range keys {
		requireHeld(t, p, key, key)
		isTrue(t)(p.RollbackFrom(ctx, key, key))
		requireAbsent(t, p, key)
	}
}

func prepareOddValues(t *testing.T, open newTexts) {
	p, ctx := open(t), t.Context()
	values := append(oddIDs(), "", "<b>&amp;/</b>", `"`, `\u0041`, `\ufffd`, "\u2028", "É", "E\u0301", "9007199254740993", `{"value":1}`)
	isTrue(t)(p.Prepare(ctx, "k", "first", 0))
	old := "first"
	for _, value := range values {
		isFalse(t)(p.ReprepareFrom(ctx, "k", old+" ", value, 0))
		isTrue(t)(p.ReprepareFrom(ctx, "k", old, value, 0))
		requireHeld(t, p, "k", value)
		got, err := p.GetValue(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, es.Prepared[string]{Value: value}, got)
		old = value
	}
	isTrue(t)(p.RollbackFrom(ctx, "k", old))
}

func prepareNames(t *testing.T, open newTexts) {
	names, emails, ctx := open(t), open(t), t.Context()
	isTrue(t)(names.Prepare(ctx, "same:{雪}", "alice", 0))
	isTrue(t)(emails.Prepare(ctx, "same:{雪}", "alice@example.com", 0))
	requireHeld(t, names, "same:{雪}", "alice")
	isTrue(t)(names.Rollback(ctx, "same:{雪}"))
	requireAbsent(t, names, "same:{雪}")
	requireHeld(t, emails, "same:{雪}", "alice@example.com")
}

// every calls all operations that take a key.
func every(ctx context.Context, p es.PrepareKey[string], key, value string, ttl time.Duration) map[string]error {
	errs := map[string]error{}
	_, errs["prepare"] = p.Prepare(ctx, key, value, ttl)
	_, errs["reprepare"] = p.Reprepare(ctx, key, value, ttl)
	_, errs["reprepare from"] = p.ReprepareFrom(ctx, key, "held", value, ttl)
	_, errs["rollback"] = p.Rollback(ctx, key)
	_, errs["rollback from"] = p.RollbackFrom(ctx, key, "held")
	_, errs["get"] = p.Get(ctx, key)
	_, errs["get value"] = p.GetValue(ctx, key)
	return errs
}

func prepareBadKeys(t *testing.T, open newTexts) {
	p := open(t)
	for what, key := range badTexts() {
		for op, err := range every(t.Context(), p, key, "v", 0) {
			t.Log(op, what)
			requireAt(t, err, es.ErrInvalid, es.Error{})
		}
	}
}

func prepareBadValues(t *testing.T, open newTexts) {
	p, ctx := open(t), t.Context()
	const bad = "a\xffb"
	refused := func(_ bool, err error) {
		t.Helper()
		requireAt(t, err, es.ErrInvalid, es.Error{})
	}
	refused(p.Prepare(ctx, "k", bad, 0))
	requireAbsent(t, p, "k")
	isTrue(t)(p.Prepare(ctx, "k", "held", 0))
	refused(p.Reprepare(ctx, "k", bad, 0))
	refused(p.ReprepareFrom(ctx, "k", "held", bad, 0))
	refused(p.ReprepareFrom(ctx, "k", bad, "held", 0))
	refused(p.RollbackFrom(ctx, "k", bad))
	requireHeld(t, p, "k", "held")
}

func prepareBadEnds(t *testing.T, open newTexts) {
	p, ctx := open(t), t.Context()
	for _, ttl := range []time.Duration{-1, -time.Millisecond, -time.Hour, -1 << 63} {
		_, err := p.Prepare(ctx, "free", "v", ttl)
		requireAt(t, err, es.ErrInvalid, es.Error{})
	}
	requireAbsent(t, p, "free")
	isTrue(t)(p.Prepare(ctx, "k", "held", 0))
	for _, ttl := range []time.Duration{-1, -time.Hour} {
		_, err := p.Reprepare(ctx, "k", "v", ttl)
		requireAt(t, err, es.ErrInvalid, es.Error{})
		_, err = p.ReprepareFrom(ctx, "k", "held", "v", ttl)
		requireAt(t, err, es.ErrInvalid, es.Error{})
	}
	requireHeld(t, p, "k", "held")
}

func prepareContext(t *testing.T, open newTexts) {
	p := open(t)
	isTrue(t)(p.Prepare(t.Context(), "k", "held", 0))
	for op, err := range every(closed(t), p, "k", "v", 0) {
		t.Log(op)
		requireAt(t, err, context.Canceled, es.Error{})
	}
	requireHeld(t, p, "k", "held")
}

var errFalse = es.Invalid("the answer was false")

// winners counts who of 200 callers was answered with true.
func winners(t *testing.T, call func(i int) (bool, error)) int {
	t.Helper()
	return together(t, 200, []error{errFalse}, func(i int) error {
		done, err := call(i)
		if err == nil && !done {
			err = errFalse
		}
		return err
	})
}

func prepareRace(t *testing.T, open newTexts) {
	p := open(t)
	for round := range 5 {
		key := fmt.Sprint("k", round)
		require.Equal(t, 1, winners(t, func(i int) (bool, error) { return p.Prepare(t.Context(), key, fmt.Sprint(i), 0) }))
	}
}

func reprepareRace(t *testing.T, open newTexts) {
	p := open(t)
	isTrue(t)(p.Prepare(t.Context(), "k", "v0", 0))
	old := "v0"
	for round := range 5 {
		require.Equal(t, 1, winners(t, func(i int) (bool, error) {
			return p.ReprepareFrom(t.Context(), "k", old, fmt.Sprintf("v%d-%d", round+1, i), 0)
		}))
		next, err := p.Get(t.Context(), "k")
		require.NoError(t, err)
		require.NotEqual(t, old, next)
		old = next
	}
}

func rollbackRace(t *testing.T, open newTexts) {
	p := open(t)
	isTrue(t)(p.Prepare(t.Context(), "k", "v", 0))
	require.Equal(t, 1, winners(t, func(i int) (bool, error) {
		if i%2 == 0 {
			return p.Rollback(t.Context(), "k")
		}
		return p.RollbackFrom(t.Context(), "k", "v")
	}))
	requireAbsent(t, p, "k")
}

func prepareAfterEndRace(t *testing.T, open newTexts) {
	p := open(t)
	ended(t, p, "k", "before")
	require.Equal(t, 1, winners(t, func(i int) (bool, error) { return p.Prepare(t.Context(), "k", fmt.Sprint(i), time.Hour) }))
}
