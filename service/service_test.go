package service_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/service"
)

var errDown = errors.New("down")

// diary is what happened, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// part notes what is done with it, and takes some time to end.
func (d *diary) part(name string, ending time.Duration) service.Part {
	return service.Part{
		Name:    name,
		Prepare: func(context.Context) error { d.note("prepare " + name); return nil },
		Run: func(ctx context.Context) error {
			d.note("run " + name)
			<-ctx.Done()
			d.note("end " + name)
			time.Sleep(ending)
			d.note("ended " + name)
			return ctx.Err()
		},
	}
}

func idle(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// silently is a service whose log nobody reads.
func silently(parts ...service.Part) *service.Service {
	return &service.Service{Parts: parts, Logger: slog.New(slog.DiscardHandler)}
}

// bubble runs a test whose time is its own.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// running is a service that runs beside the test.
type running struct {
	stop  func()
	ended chan error
}

func start(t *testing.T, s *service.Service) running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := running{stop, make(chan error, 1)}
	go func() { r.ended <- s.Run(ctx) }()
	synctest.Wait()
	return r
}

func TestAllAreReadyBeforeOneRunsAndTheLastStopsFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		r := start(t, silently(d.part("a", time.Second), d.part("b", time.Second), d.part("c", time.Second)))
		require.Equal(t, []string{"prepare a", "prepare b", "prepare c"}, d.read()[:3])
		require.ElementsMatch(t, []string{"run a", "run b", "run c"}, d.read()[3:])
		r.stop()
		require.NoError(t, <-r.ended)
		require.Equal(t, []string{"end c", "ended c", "end b", "ended b", "end a", "ended a"}, d.read()[6:])
	})
}

func TestNothingRunsWhereOneCannotBePrepared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		broken := d.part("broken", 0)
		broken.Prepare = func(context.Context) error { return &es.Error{Op: "join", Err: errDown} }
		err := silently(d.part("a", 0), broken, d.part("c", 0)).Run(t.Context())
		require.ErrorIs(t, err, errDown)
		require.EqualError(t, err, "part broken: prepare: join: down")
		require.Equal(t, []string{"prepare a"}, d.read())
	})
}

func TestFAIL04_StartUpWaitsForAServerThatRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		var calls atomic.Int32
		waiting := d.part("waiting", 0)
		waiting.Prepare = func(context.Context) error {
			if calls.Add(1) < 50 {
				return es.ErrOutOfMemory
			}
			return nil
		}
		s := silently(waiting)
		r := start(t, s)
		h := s.Health(t.Context())
		require.Equal(t, service.Health{Live: true, Phase: service.Preparing, Parts: []service.PartHealth{
			{Name: "waiting", State: service.PartPreparing, Error: es.ErrOutOfMemory.Error()},
		}}, h)
		time.Sleep(time.Hour)
		require.EqualValues(t, 50, calls.Load(), "it was tried on, and then no more")
		require.Equal(t, []string{"run waiting"}, d.read())
		r.stop()
		require.NoError(t, <-r.ended)
	})
}

func TestAStopDuringThePreparationsStartsNothing(t *testing.T) {
	for name, prepare := range map[string]func(ctx context.Context) error{
		"heeds its context": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"heeds nothing":     func(context.Context) error { time.Sleep(time.Minute); return nil },
		"waits":             func(context.Context) error { return es.ErrUnavailable },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var d diary
				part := d.part("a", 0)
				part.Prepare = prepare
				r := start(t, silently(part, d.part("b", 0)))
				began := time.Now()
				r.stop()
				require.NoError(t, <-r.ended)
				require.LessOrEqual(t, time.Since(began), time.Second)
				require.Empty(t, d.read())
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestAnErrorInOnePartStopsAllWithItsCause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		failing := service.Part{Name: "failing", Run: func(context.Context) error {
			time.Sleep(time.Minute)
			return &es.Error{Op: "read", Err: errDown}
		}}
		err := silently(d.part("a", time.Second), failing, d.part("c", time.Second)).Run(t.Context())
		require.ErrorIs(t, err, errDown)
		var part *service.PartError
		require.ErrorAs(t, err, &part)
		require.Equal(t, "failing", part.Part)
		require.EqualError(t, err, "part failing: read: down")
		require.Equal(t, []string{"end c", "ended c", "end a", "ended a"}, d.read()[4:])
	})
}

func TestAPanicIsAnErrorOfItsPart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		failing := service.Part{Name: "failing", Run: func(context.Context) error { panic(errDown) }}
		err := silently(d.part("a", 0), failing).Run(t.Context())
		require.ErrorIs(t, err, es.ErrPanic)
		require.ErrorIs(t, err, errDown)
		require.ErrorContains(t, err, "service_test.go")
		require.Contains(t, d.read(), "ended a")
	})
}

func TestErrorsWhileStoppingAreJoinedToTheCause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		errDirty := errors.New("dirty")
		dirty := service.Part{Name: "dirty", Run: func(ctx context.Context) error { <-ctx.Done(); return errDirty }}
		failing := service.Part{Name: "failing", Run: func(context.Context) error { return errDown }}
		err := silently(dirty, failing).Run(t.Context())
		require.EqualError(t, err, "part failing: down\npart dirty: dirty")
		require.ErrorIs(t, err, errDown)
		require.ErrorIs(t, err, errDirty)

		r := start(t, silently(dirty))
		r.stop()
		require.EqualError(t, <-r.ended, "part dirty: dirty")
	})
}

func TestWorkThatIsFinishedEndsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		once := service.Part{Name: "once", Run: func(context.Context) error { return nil }}
		passive := service.Part{Name: "passive", Health: func(context.Context) error { return nil }}
		s := silently(once, d.part("a", 0), passive)
		r := start(t, s)
		require.Equal(t, []string{"prepare a", "run a"}, d.read())
		require.True(t, s.Health(t.Context()).Ready)
		r.stop()
		require.NoError(t, <-r.ended)
		require.NoError(t, silently(once, passive).Run(t.Context()), "nothing is left to do")
	})
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := service.Part{Name: "a", Run: idle}
		for name, s := range map[string]*service.Service{
			"no parts":   {},
			"no name":    {Parts: []service.Part{{Name: " ", Run: idle}}},
			"same names": {Parts: []service.Part{a, a}},
			"restarts":   {Parts: []service.Part{{Name: "a", Run: idle, Restarts: -1}}},
			"grace":      {Parts: []service.Part{a}, Grace: -1},
			"backoff":    {Parts: []service.Part{a}, Backoff: time.Minute, MaxBackoff: time.Second},
			"probes":     {Parts: []service.Part{a}, ProbeTimeout: -1},
		} {
			require.ErrorIs(t, s.Run(t.Context()), es.ErrInvalid, name)
		}
		s := silently(a)
		r := start(t, s)
		require.ErrorIs(t, s.Run(t.Context()), es.ErrInvalid, "it runs")
		r.stop()
		require.NoError(t, <-r.ended)
		require.ErrorIs(t, s.Run(t.Context()), es.ErrInvalid, "it has run")
	})
}
