package migrate

import (
	"context"
	"sync"
)

// pool runs calls side by side until one of them fails.
type pool struct {
	ctx     context.Context //nolint:containedctx // it lives for one step
	stop    context.CancelCauseFunc
	free    chan struct{}
	running sync.WaitGroup
}

func newPool(ctx context.Context, size int) *pool {
	ctx, stop := context.WithCancelCause(ctx)
	return &pool{ctx: ctx, stop: stop, free: make(chan struct{}, size)}
}

// run calls f beside the others, once one of the places is free. It reports false, and
// calls nothing, after a failure.
func (p *pool) run(f func(ctx context.Context) error) bool {
	select {
	case <-p.ctx.Done():
		return false
	case p.free <- struct{}{}:
	}
	if p.ctx.Err() != nil {
		return false
	}
	p.running.Go(func() {
		defer func() { <-p.free }()
		if err := f(p.ctx); err != nil {
			p.stop(err)
		}
	})
	return true
}

// end waits for all calls and returns the first failure.
func (p *pool) end() error {
	p.running.Wait()
	err := context.Cause(p.ctx)
	p.stop(nil)
	return err
}
