package estest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var valveChecks = []busCheck{
	{"a closed valve holds messages back, and lets them go on once it opens", busValve},
	{"a closed valve lets a handler that runs end, and others take over at the end", busValveEnds},
}

func busValve(t *testing.T, k busKit) {
	s := k.subscription()
	s.Valve = &es.Valve{}
	r := k.read(t, s, nil)
	sent := k.letters("a-1", 3)
	k.sendAll(t, sent[0])
	r.wait(t, 1)
	s.Valve.Close()
	k.sendAll(t, sent[1:]...)
	other := s // of another group, which shows that they have come
	other.Group += "-other"
	other.Valve = nil
	k.read(t, other, nil).wait(t, 3)
	require.Len(t, r.calls(), 1)
	s.Valve.Open()
	require.Equal(t, sent, lettersOf(r.wait(t, 3)))
}

func busValveEnds(t *testing.T, k busKit) {
	s := k.subscription()
	s.Valve = &es.Valve{}
	begun, release := make(chan struct{}), make(chan struct{})
	r := k.read(t, s, func(_ context.Context, c received) error {
		if c.number == 1 {
			close(begun)
			<-release
		}
		return nil
	})
	k.sendAll(t, k.letters("a-1", 3)...)
	<-begun
	s.Valve.Close()
	close(release)
	r.end(t)
	require.Len(t, r.calls(), 1)
	s.Valve = nil
	require.Equal(t, []int{2, 3}, numbersOf(k.read(t, s, nil).wait(t, 2)), "the first one is done")
}
