package estest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var endChecks = []busCheck{
	{"a context that is done ends a subscription with nil", busEnds},
	{"a handler that runs when the subscription ends may finish", busFinishes},
	{"the grace ends the handlers' context, and costs no attempt", busGrace},
	{"what a subscription leaves is handled by the next, and goes on counting", busHandsOver},
	{"a group goes on where it was", busGoesOn},
}

func busEnds(t *testing.T, k busKit) {
	idle := k.read(t, k.subscription(), nil)
	idle.end(t)
	busy := k.read(t, k.subscription(), nil)
	k.sendAll(t, k.letters("a-1", 1)...)
	busy.wait(t, 1)
	busy.end(t)
	require.Empty(t, idle.calls())
	require.NoError(t, k.subscribe(closed(t), k.subscription(), nil), "also one that was done before")
}

func busFinishes(t *testing.T, k busKit) {
	s := k.subscription()
	begun, finish := make(chan struct{}), make(chan struct{})
	first := k.read(t, s, func(ctx context.Context, _ received) error {
		close(begun)
		<-finish
		return ctx.Err()
	})
	sent := k.letters("a-1", 2)
	k.sendAll(t, sent[0])
	<-begun
	first.stop()
	select {
	case <-first.ended:
		require.Fail(t, "it ended before its handler")
	case <-time.After(20 * time.Millisecond):
	}
	close(finish)
	first.end(t)
	second := k.read(t, s, nil)
	k.sendAll(t, sent[1])
	require.Equal(t, sent[1:], lettersOf(second.wait(t, 1)), "what was handled does not come again")
}

func busGrace(t *testing.T, k busKit) {
	s := k.subscription()
	s.Grace = 20 * time.Millisecond
	sent := k.letters("a-1", 2)
	require.NoError(t, k.prepare(t.Context(), s))
	k.sendAll(t, sent...)
	first := k.read(t, s, func(ctx context.Context, _ received) error {
		<-ctx.Done()
		return ctx.Err()
	})
	first.wait(t, 1)
	first.end(t)
	got := k.read(t, s, nil).wait(t, 2)
	require.Equal(t, sent, lettersOf(got))
	require.Equal(t, []int{1, 1}, attemptsOf(got))
	require.True(t, got[0].Recovered)
}

func busHandsOver(t *testing.T, k busKit) {
	s := k.subscription()
	s.Workers, s.Prefetch = 1, 10 // one holds all that there is: across consumers nothing is in order
	sent := k.letters("a-1", 5)
	require.NoError(t, k.prepare(t.Context(), s))
	k.sendAll(t, sent...)
	begun, fail := make(chan struct{}), make(chan struct{})
	first := k.read(t, s, func(context.Context, received) error {
		close(begun)
		<-fail
		return errOops
	})
	<-begun
	first.stop()
	close(fail)
	first.end(t)
	got := k.read(t, s, nil).wait(t, 5)
	require.Equal(t, sent, lettersOf(got), "in order")
	require.Equal(t, []int{2, 1, 1, 1, 1}, attemptsOf(got))
	require.True(t, got[0].Recovered)
}

func busGoesOn(t *testing.T, k busKit) {
	s := k.subscription()
	sent := k.letters("a-1", 4)
	k.sendAll(t, sent[0], sent[1])
	first := k.read(t, s, nil)
	first.wait(t, 2)
	first.end(t)
	k.sendAll(t, sent[2], sent[3])
	require.Equal(t, sent[2:], lettersOf(k.read(t, s, nil).wait(t, 2)))
}
