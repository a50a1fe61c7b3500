package aggregate

import (
	"context"
	"errors"
	"sync"

	"github.com/headwater-go/headwater/es"
)

// unpublished is what a repository and a relay warn of.
const unpublished = "commits are not published yet"

// options say how a commit is appended: with a note for as long as it is unpublished, and
// with the state event for a store that publishes by itself.
func (r *Repository[S]) options(now *es.Snapshot[S], c *es.Commit) es.AppendOptions {
	o := es.AppendOptions{Note: r.Events != nil}
	if o.Note && r.States != nil {
		o.State = stateEvent(now, c)
	}
	return o
}

func stateEvent[S any](now *es.Snapshot[S], c *es.Commit) *es.StateEvent {
	return &es.StateEvent{
		Commit: *c, FirstOperator: now.FirstOperator, FirstEventTime: now.FirstEventTime,
		State: now.State, Tags: now.Tags, Deleted: now.Deleted,
	}
}

// publish publishes the handler's own commit, unless an older one is unpublished. It
// never fails the command: the note stands, and somebody goes on with it.
func (r *Repository[S]) publish(ctx context.Context, o es.AppendOptions, c *es.Commit, a es.Appended) {
	switch {
	case !o.Note || a.Published:
		return
	case !a.Publish:
		r.carrier.watch(r, c.Aggregate, c.Version)
		return
	}
	err := r.Events.Publish(ctx, *c)
	if err == nil && o.State != nil {
		err = r.publishState(ctx, *o.State)
	}
	if err != nil {
		r.warn(ctx, unpublished, &es.Meta{Aggregate: c.Aggregate, Version: c.Version}, err)
		r.carrier.watch(r, c.Aggregate, c.Version)
		return
	}
	r.carrier.move(r, es.Move{Aggregate: c.Aggregate, From: c.Version, Through: c.Version})
}

// publishState passes over what no repeat would mend: a state event is made from the
// commits at any time.
func (r *Repository[S]) publishState(ctx context.Context, e es.StateEvent) error {
	err := r.States.Publish(ctx, e)
	if err == nil || transient(err) {
		return err
	}
	r.warn(ctx, "state event was not published", &es.Meta{Aggregate: e.Aggregate, Version: e.Version}, err)
	return nil
}

// republish publishes the commit of a command that was carried out before, if its note
// still stands: whoever stored it may have died before it came to that.
func (r *Repository[S]) republish(ctx context.Context, c *es.Commit) {
	if r.Events == nil {
		return
	}
	at, err := r.noteOf(ctx, c.Aggregate)
	if err == nil && (at == 0 || at > c.Version) {
		return
	}
	if err == nil {
		more, failed := r.advance(ctx, always, []es.Note{{Aggregate: c.Aggregate, Version: at}}, 1)
		if len(more)+len(failed) == 0 {
			return
		}
	}
	r.carrier.watch(r, c.Aggregate, c.Version)
}

func always() bool { return true }

// nowhere is a version at which no note stands: to move one from there is to look where
// it stands.
const nowhere = es.MaxVersion + 1

func (r *Repository[S]) noteOf(ctx context.Context, id es.AggregateID) (int, error) {
	return r.Outbox.Published(ctx, id, nowhere, nowhere)
}

// transient errors are no fault of the message.
func transient(err error) bool {
	return is(err, es.ErrUnavailable, es.ErrUncertain, context.Canceled, context.DeadlineExceeded)
}

const (
	// publishBatch is how many commits of one aggregate are published at once.
	publishBatch = 32
	// publishers is how many aggregates are published side by side.
	publishers = 32
)

// unsent is a note whose commit could not be published.
type unsent struct {
	es.Note
	err error
}

// advance publishes what follows from each note on and moves the note, for so many
// rounds, as long as may says so. To begin at a note's version is always safe: all before
// it is published. It returns the notes that have more to publish, and those that failed.
func (r *Repository[S]) advance(ctx context.Context, may func() bool, notes []es.Note, rounds int) (more []es.Note, failed []unsent) {
	for ; len(notes) > 0 && rounds > 0; rounds-- {
		through, errs := make([]int, len(notes)), make([]error, len(notes))
		sideBySide(len(notes), func(i int) {
			if may() {
				through[i], errs[i] = r.publishFrom(ctx, notes[i])
			}
		})
		var moves []es.Move
		for i, n := range notes {
			if through[i] >= n.Version {
				moves = append(moves, es.Move{Aggregate: n.Aggregate, From: n.Version, Through: through[i]})
			}
			if errs[i] != nil {
				failed = append(failed, unsent{es.Note{Aggregate: n.Aggregate, Version: max(n.Version, through[i]+1)}, errs[i]})
			}
		}
		notes = r.moveAll(ctx, moves, func(n es.Note, err error) { failed = append(failed, unsent{n, err}) })
		for _, f := range failed { // it stands where it failed
			notes = without(notes, f.Note)
		}
	}
	return notes, failed
}

func without(notes []es.Note, note es.Note) []es.Note {
	for i, n := range notes {
		if n == note {
			return append(notes[:i], notes[i+1:]...)
		}
	}
	return notes
}

// moveAll moves notes on and returns those behind which more is to be published. Where a
// note stands elsewhere, somebody else is at it.
func (r *Repository[S]) moveAll(ctx context.Context, moves []es.Move, failed func(es.Note, error)) []es.Note {
	if len(moves) == 0 {
		return nil
	}
	next, err := r.Outbox.PublishedAll(ctx, moves...)
	var more []es.Note
	for i, m := range moves {
		switch next[i] {
		case -1:
			failed(es.Note{Aggregate: m.Aggregate, Version: m.From}, err)
		case m.Through + 1:
			more = append(more, es.Note{Aggregate: m.Aggregate, Version: next[i]})
		}
	}
	return more
}

// publishFrom publishes the next commits of one aggregate, in order, and returns the last
// version that was.
func (r *Repository[S]) publishFrom(ctx context.Context, n es.Note) (through int, err error) {
	var commits []es.Commit
	for c, err := range r.Store.Load(ctx, n.Aggregate, es.Versions{From: n.Version, To: n.Version + publishBatch - 1}) {
		if err != nil {
			return 0, err
		}
		commits = append(commits, c)
	}
	if len(commits) == 0 {
		return 0, at(n.Aggregate, n.Version, es.Corrupt("a note stands at a version that is not stored"))
	}
	sent := len(commits)
	if err = r.Events.Publish(ctx, commits...); err != nil {
		sent = 0
	}
	for err != nil && sent < len(commits) && len(commits) > 1 && !transient(err) { // up to the one at fault
		if failure := r.Events.Publish(ctx, commits[sent]); failure != nil {
			err = failure
			break
		}
		sent++
	}
	if r.States != nil && sent > 0 {
		if done, failure := r.publishStates(ctx, commits[:sent]); failure != nil {
			sent, err = done, errors.Join(err, failure)
		}
	}
	return n.Version + sent - 1, err
}

// publishStates makes the state events of commits that follow each other.
func (r *Repository[S]) publishStates(ctx context.Context, commits []es.Commit) (done int, err error) {
	s, err := r.before(ctx, commits[0].Aggregate, commits[0].Version)
	for i := range commits {
		if err == nil {
			err = r.apply(&s, &commits[i])
		}
		switch {
		case err == nil:
			if err = r.publishState(ctx, *stateEvent(&s, &commits[i])); err != nil {
				return i, err
			}
		case transient(err):
			return i, err
		default: // no state can be made, now or later
			r.warn(ctx, "state event was not published", &es.Meta{Aggregate: s.Aggregate, Version: commits[i].Version}, err)
			return len(commits), nil
		}
	}
	return len(commits), nil
}

// before is the state just before a version.
func (r *Repository[S]) before(ctx context.Context, id es.AggregateID, version int) (es.Snapshot[S], error) {
	s := fresh[S](id)
	if version == 1 {
		return s, nil
	}
	if r.Snapshots != nil {
		if saved, err := r.Snapshots.Load(ctx, id); err == nil && saved.Version < version {
			s = saved
		}
	}
	for c, err := range r.Store.Load(ctx, id, es.Versions{From: max(s.Version, 1), To: version - 1}) {
		switch {
		case err != nil:
			return s, err
		case c.Version > s.Version:
			if err := r.apply(&s, &c); err != nil {
				return s, err
			}
		case s.EventID != "" && c.ID != s.EventID: // the snapshot is of events that are gone
			return r.Fold(id, r.Store.Load(ctx, id, es.Versions{To: version - 1}))
		}
	}
	return s, nil
}

// sideBySide calls f for 0 to n-1, some at a time.
func sideBySide(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	work := make(chan int)
	for range min(n, publishers) {
		wg.Go(func() {
			for i := range work {
				f(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
}
