package commandbus

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/headwater-go/headwater/es"
)

// SendAndWait sends a command and waits until it has come to the stage, until it fails
// before that, or until ctx is done; [DefaultWait] at most where ctx has no deadline. Of a
// void command only [es.StageSent] can be waited for.
//
// What failed is an [*es.CodeError]: [errors.Is] finds what it would find where the command
// was carried out, in whatever process that was. A command that was not sent is the
// error of Send, or an [es.ErrUnavailable] where answers cannot be received now. Where the
// time is over, the error is an [es.ErrUncertain] and that of the context: the command may
// have been carried out, or may be later. It may be sent again with the same RequestID: it
// is carried out once, and the second caller gets the version that the first one would have
// got. The result says in any case what is known.
func (g *Gateway) SendAndWait(ctx context.Context, c es.Command, w es.Wait) (es.CommandResult, error) {
	var last es.CommandResult
	err := g.wait(ctx, c, w, func(waits *waiting, result *es.CommandResult, err error) bool {
		if last = *result; waits != nil && err == nil {
			last = waits.last()
		}
		return true
	})
	if err == nil {
		err = last.Err()
	}
	return last, err
}

// SendAndFollow is SendAndWait for who wants to see each stage that the command comes to:
// SENT, and so on, the last one being the one that is waited for, or [es.StageProcessed]
// where that came later. A failure is yielded with its result, and is the last.
// Who stops earlier waits no longer. The command is sent when the sequence is ranged over.
func (g *Gateway) SendAndFollow(ctx context.Context, c es.Command, w es.Wait) iter.Seq2[es.CommandResult, error] {
	return func(yield func(es.CommandResult, error) bool) {
		_ = g.wait(ctx, c, w, func(_ *waiting, result *es.CommandResult, err error) bool {
			if err == nil {
				err = result.Err()
			}
			return yield(*result, err)
		})
	}
}

// each hears of a result, with the error that ends the wait. It returns false to end it. waits
// is nil where nothing waits.
type each func(waits *waiting, result *es.CommandResult, err error) bool

// wait sends c and calls f for each result, the last time with the error that it returns.
func (g *Gateway) wait(ctx context.Context, c es.Command, w es.Wait, f each) error {
	c.Header = slices.Clone(c.Header)
	c.Complete(g.id, time.Now())
	ctx, cancel := limited(ctx)
	defer cancel()
	wait, err := w.WithDefaults()
	if err == nil && c.Void && wait.Stage != es.StageSent {
		err = es.Invalid("a void command comes to %s and no further", es.StageSent)
	}
	var waits *waiting
	if err == nil && wait.Stage != es.StageSent {
		if err = g.replies.ready(ctx, g.rdb != nil); err == nil {
			waits = g.register(&c, wait)
			defer g.forget(waits)
		}
	}
	if err == nil {
		err = g.send(ctx, c)
	} else {
		err = &es.Error{Op: "send " + c.Name, Aggregate: c.Aggregate, RequestID: c.RequestID, Err: err}
	}
	signal := sent(&c, err)
	if err != nil || waits == nil {
		f(nil, &es.CommandResult{Signal: signal, RequestID: c.RequestID}, err)
		return err
	}
	signal.WaitID = waits.plan.ID
	waits.take(signal)
	return g.follow(ctx, waits, f)
}

// limited is ctx with a deadline.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, DefaultWait)
}

// register begins a wait, before the command is sent.
func (g *Gateway) register(c *es.Command, w es.Wait) *waiting {
	plan := es.WaitPlan{ID: g.id(), Endpoint: g.endpoint(), Wait: w}
	plan.Write(&c.Header)
	waits := newWaiting(*c, plan)
	waits.command.Body = nil // it is not needed any more
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits[plan.ID] = waits
	return waits
}

func (g *Gateway) forget(w *waiting) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waits, w.plan.ID)
}

// follow calls f for what comes until the wait is over, which it is for ctx at the latest.
func (g *Gateway) follow(ctx context.Context, w *waiting, f each) error {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	ask := time.NewTimer(left - min(left/5, time.Second))
	defer ask.Stop()
	for {
		results, over := w.next()
		for i := range results {
			if !f(w, &results[i], nil) || results[i].Err() != nil {
				return nil
			}
		}
		if over {
			return nil
		}
		select {
		case <-w.changed:
		case <-ask.C:
			g.ask(ctx, w)
		case <-ctx.Done():
			soFar := w.soFar()
			err := &es.Error{
				Op: "wait for " + string(w.plan.Stage) + " of " + w.command.Name, Aggregate: w.command.Aggregate, Version: soFar.Version, RequestID: w.command.RequestID,
				Err: fmt.Errorf("%w: %s is all that is known: %w", es.ErrUncertain, soFar.Stage, context.Cause(ctx)),
			}
			f(w, &soFar, err)
			return err
		}
	}
}

// ask looks up whether the command was carried out, of which nothing was heard.
func (g *Gateway) ask(ctx context.Context, w *waiting) {
	if g.Finder == nil || w.isProcessed() {
		return
	}
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return
	}
	commit, err := g.Finder.FindRequest(ctx, w.command.Aggregate, w.command.RequestID)
	if err != nil {
		return // it was not carried out yet, or nobody can say
	}
	w.take(processed(&w.command, commit.Version))
}
