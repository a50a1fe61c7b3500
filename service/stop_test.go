package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/service"
)

// Promise 12: a shutdown takes one second more than the grace, at the most.
func TestAStopEndsASecondAfterTheGraceWhateverThePartsDo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		release := make(chan struct{})
		stuck := service.Part{Name: "stuck", Run: func(context.Context) error { <-release; return nil }}
		s := silently(d.part("a", 500*time.Millisecond), stuck, d.part("c", 2*time.Second))
		s.Grace = 5 * time.Second
		r := start(t, s)
		began := time.Now()
		r.stop()
		err := <-r.ended
		require.Greater(t, time.Since(began), 5*time.Second)
		require.LessOrEqual(t, time.Since(began), 6*time.Second)
		require.ErrorIs(t, err, service.ErrGrace)
		require.EqualError(t, err, "part stuck: did not end within the grace of 5s")
		require.Equal(t, []string{"end c", "ended c", "end a", "ended a"}, d.read()[4:], "what is before it is stopped nevertheless")
		require.False(t, s.Health(t.Context()).Live)
		close(release)
	})
}

func TestTheGraceIsForAllPartsTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		r := start(t, silently(d.part("a", 10*time.Second), d.part("b", 20*time.Second)))
		began := time.Now()
		r.stop()
		require.EqualError(t, <-r.ended, "part a: did not end within the grace of 25s", "b left too little for it")
		require.LessOrEqual(t, time.Since(began), 26*time.Second)
		time.Sleep(time.Minute) // a ends
	})
}

func TestACauseIsNamedBeforeThePartsThatAreLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		failing := service.Part{Name: "failing", Run: func(context.Context) error { return errDown }}
		err := silently(d.part("a", time.Minute), failing).Run(t.Context())
		require.EqualError(t, err, "part failing: down\npart a: did not end within the grace of 25s")
		require.ErrorIs(t, err, errDown)
		time.Sleep(time.Minute)
	})
}

func TestAPartThatAskedForItIsRunAgainAfterGrowingPauses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		var began []time.Time
		failing := d.part("failing", 0)
		failing.Restarts = 10
		failing.Run = func(context.Context) error {
			began = append(began, time.Now())
			return errDown
		}
		err := silently(failing).Run(t.Context())
		require.ErrorIs(t, err, errDown, "a crash loop ends")
		require.Len(t, began, 11)
		require.Len(t, d.read(), 11, "each life begins with its preparations")
		// 1 s, doubled up to 30 s, each 50 % more or less.
		for i, pause := range []float64{1, 2, 4, 8, 16, 30, 30, 30, 30, 30} {
			require.InDelta(t, pause, began[i+1].Sub(began[i]).Seconds(), pause/2+1e-6, "pause %d", i)
		}
	})
}

func TestALongLifeEndsTheRow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lives := 0
		s := silently(service.Part{Name: "long", Restarts: 1, Run: func(context.Context) error {
			if lives++; lives < 20 {
				time.Sleep(30 * time.Second)
			}
			return errDown
		}})
		require.ErrorIs(t, s.Run(t.Context()), errDown)
		require.Equal(t, 20, lives, "the last one was short, and had one behind it in its row")
	})
}

func TestAPermanentErrorIsNotTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lives := 0
		s := silently(service.Part{Name: "a", Restarts: 5, Run: func(context.Context) error {
			lives++
			return es.Permanent(errDown)
		}})
		require.ErrorIs(t, s.Run(t.Context()), errDown)
		require.Equal(t, 1, lives)
	})
}

func TestAStopDoesNotWaitForARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := silently(service.Part{Name: "a", Restarts: 5, Run: func(context.Context) error { return errDown }})
		s.Backoff = time.Hour
		r := start(t, s)
		h := s.Health(t.Context())
		require.False(t, h.Ready)
		require.Equal(t, []service.PartHealth{{Name: "a", State: service.PartRestarting, Error: "down", Restarts: 1}}, h.Parts)
		began := time.Now()
		r.stop()
		require.NoError(t, <-r.ended)
		require.Zero(t, time.Since(began))
	})
}
