package service

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/headwater-go/headwater/es"
)

// part is a part that a service runs.
type part struct {
	Part
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // why it ended; to be read when it has

	// The service's lock guards these.
	state    State
	problem  string // the error that the state is about
	restarts int
	flight   *flight
}

func newPart(p Part) *part {
	return &part{Part: p, ended: make(chan struct{}), cancel: func() {}, state: PartPreparing}
}

// endsBefore waits for the part until ctx is done, and reports whether it has ended.
func (p *part) endsBefore(ctx context.Context) bool {
	select {
	case <-p.ended:
		return true
	case <-ctx.Done():
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// prepare prepares a part, and waits for a server that is not available yet. It returns
// nil where ctx has ended first.
func (s *Service) prepare(ctx context.Context, p *part) error {
	if p.Prepare == nil {
		return nil
	}
	pauses := s.pauses()
	for ctx.Err() == nil {
		err := withinClosing(ctx, func() error { return guarded(ctx, p.Prepare) })
		if err == nil || ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, es.ErrUnavailable)) {
			return nil
		}
		if !errors.Is(err, es.ErrUnavailable) {
			s.set(p, PartFailed, err)
			return &PartError{p.Name, fmt.Errorf("prepare: %w", err)}
		}
		s.set(p, PartPreparing, err)
		s.Logger.WarnContext(ctx, "part cannot be prepared; trying on", "part", p.Name, "reason", err)
		pause(ctx, pauses.NextBackOff())
	}
	return nil
}

// withinClosing is what f returns, or ctx's error where f does not heed ctx.
func withinClosing(ctx context.Context, f func() error) error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-time.After(closing):
		return ctx.Err()
	}
}

// run runs a part until ctx is done, or it has finished or failed for good.
func (s *Service) run(ctx context.Context, p *part, failed chan<- *part) {
	defer close(p.ended)
	s.set(p, PartRunning, nil)
	if p.Run == nil {
		return
	}
	pauses, row, prepare := s.pauses(), 0, false
	for {
		since := time.Now()
		err := s.once(ctx, p, prepare)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				p.err = err
			}
			s.set(p, PartEnded, p.err)
			return
		}
		if err == nil {
			s.set(p, PartEnded, nil)
			return
		}
		if time.Since(since) >= s.MaxBackoff {
			row = 0
			pauses.Reset()
		}
		if row >= p.Restarts || es.IsPermanent(err) {
			p.err = err
			s.set(p, PartFailed, err)
			failed <- p
			return
		}
		row, prepare = row+1, true
		wait := pauses.NextBackOff()
		s.set(p, PartRestarting, err)
		s.Logger.WarnContext(ctx, "part failed; it is run again", "part", p.Name, "restart", row, "pause", wait, "reason", err)
		pause(ctx, wait)
	}
}

// once is one life of a part.
func (s *Service) once(ctx context.Context, p *part, prepare bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if prepare && p.Prepare != nil {
		if err := guarded(ctx, p.Prepare); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	s.set(p, PartRunning, nil)
	return guarded(ctx, p.Run)
}

func (s *Service) pauses() backoff.BackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(s.Backoff), backoff.WithMaxInterval(s.MaxBackoff),
		backoff.WithMultiplier(2), backoff.WithMaxElapsedTime(0))
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// guarded makes a panic an error with its stack, so that the other parts can end.
func guarded(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("%w: %w\n%s", es.ErrPanic, p, debug.Stack())
		default:
			err = fmt.Errorf("%w: %v\n%s", es.ErrPanic, p, debug.Stack())
		}
	}()
	return f(ctx)
}
