package estest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var startChecks = []busCheck{
	{"a prepared group misses nothing that is sent before it subscribes", busPrepared},
	{"GRP-01 a new group without a Start", busNoStart},
	{"a group from now on misses what was sent before", busFromNow},
	{"a group may begin behind a message", busFromID},
	{"a group that exists keeps its place, whatever Start says", busKeepsPlace},
	{"every subscriber of a broadcast gets every message from then on", busBroadcast},
}

func busPrepared(t *testing.T, k busKit) {
	for _, start := range []es.Start{"", es.FromNow, es.FromBeginning} {
		typ := newType()
		b := k.open(typ)
		s := newSubscription(typ)
		s.Start = start
		require.NoError(t, b.prepare(t.Context(), s))
		require.NoError(t, b.prepare(t.Context(), s), "any number of times")
		sent := busKit{typ: typ}.letters("a-1", 3)
		b.sendAll(t, sent[0], sent[1])
		require.NoError(t, b.prepare(t.Context(), s), "it keeps its place")
		b.sendAll(t, sent[2])
		require.Equal(t, sent, lettersOf(b.read(t, s, nil).wait(t, 3)))
	}
}

func busNoStart(t *testing.T, k busKit) {
	s := k.subscription()
	s.Start = ""
	sent := k.letters("a-1", 1)
	k.sendAll(t, sent...)
	if !k.mustStart {
		require.Equal(t, sent, lettersOf(k.read(t, s, nil).wait(t, 1)), "it begins at the beginning")
		return
	}
	for _, err := range []error{k.prepare(t.Context(), s), k.subscribe(t.Context(), s, nil)} {
		requireAt(t, err, es.ErrStartRequired, es.Error{})
		require.Contains(t, err.Error(), s.Group)
		require.Contains(t, err.Error(), k.typ.String()+k.kind)
	}
	s.Start = es.FromBeginning
	require.NoError(t, k.prepare(t.Context(), s))
	s.Start = ""
	require.Equal(t, sent, lettersOf(k.read(t, s, nil).wait(t, 1)), "the group exists: nothing to decide")
}

func busFromNow(t *testing.T, k busKit) {
	s := k.subscription()
	s.Start = es.FromNow
	sent := k.letters("a-1", 3)
	k.sendAll(t, sent[0])
	require.NoError(t, k.prepare(t.Context(), s))
	k.sendAll(t, sent[1])
	r := k.read(t, s, nil)
	k.sendAll(t, sent[2])
	require.Equal(t, sent[1:], lettersOf(r.wait(t, 2)))
}

func busFromID(t *testing.T, k busKit) {
	sent := k.letters("a-1", 4)
	k.sendAll(t, sent...)
	all := k.read(t, k.subscription(), nil).wait(t, 4)
	s := k.subscription()
	s.Start = es.Start(all[1].Delivery.ID)
	require.Equal(t, all[2].Delivery.ID, k.read(t, s, nil).wait(t, 2)[0].Delivery.ID)
	s = k.subscription()
	s.Start = "yesterday"
	require.Error(t, k.prepare(t.Context(), s))
}

func busKeepsPlace(t *testing.T, k busKit) {
	s := k.subscription()
	sent := k.letters("a-1", 3)
	k.sendAll(t, sent[0])
	first := k.read(t, s, nil)
	first.wait(t, 1)
	first.end(t)
	k.sendAll(t, sent[1])
	for _, start := range []es.Start{es.FromBeginning, es.FromNow, ""} {
		s.Start = start
		require.NoError(t, k.prepare(t.Context(), s))
	}
	k.sendAll(t, sent[2])
	require.Equal(t, sent[1:], lettersOf(k.read(t, s, nil).wait(t, 2)))
}

func busBroadcast(t *testing.T, k busKit) {
	k.sendAll(t, k.letters("before", 3)...)
	s := k.subscription()
	s.Broadcast, s.Start = true, ""
	require.NoError(t, k.prepare(t.Context(), s), "there is nothing to prepare")
	readers := []*reader{k.read(t, s, nil), k.read(t, s, nil), k.read(t, s, nil)}
	for _, r := range readers {
		var knocks atomic.Int64
		eventually(t, func() bool { // until it has begun
			k.sendAll(t, k.letters(fmt.Sprint("knock-", knocks.Add(1)), 1)...)
			return len(r.calls()) > 0
		})
	}
	sent := k.letters("a-1", 20)
	k.sendAll(t, sent...)
	for _, r := range readers {
		eventually(t, func() bool { return len(ofAggregate(r.calls(), "a-1")) >= len(sent) })
		require.Equal(t, sent, lettersOf(ofAggregate(r.calls(), "a-1")))
		require.Empty(t, ofAggregate(r.calls(), "before"))
		r.end(t)
	}
	again := k.read(t, s, nil)
	eventually(t, func() bool {
		k.sendAll(t, k.letters("knock", 1)...)
		return len(again.calls()) > 0
	})
	require.Empty(t, ofAggregate(again.calls(), "a-1"), "the group of a broadcast ends with it")
	require.WithinDuration(t, time.Now(), again.calls()[0].Sent, patience)
}
