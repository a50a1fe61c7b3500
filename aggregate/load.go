package aggregate

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/headwater-go/headwater/es"
)

// Load returns the aggregate as it is now. One that does not exist is an
// [es.ErrNotFound]; an event whose type is not known is an [es.ErrUnknownType].
func (r *Repository[S]) Load(ctx context.Context, id es.AggregateID) (es.Snapshot[S], error) {
	r.once.Do(r.defaults)
	now, err := r.load(ctx, id)
	if err == nil && now.Version == 0 {
		err = es.ErrNotFound
	}
	if err != nil {
		return es.Snapshot[S]{}, at(id, 0, err)
	}
	return now.Snapshot, nil
}

// LoadVersion returns the aggregate as it was at a version, which must exist.
func (r *Repository[S]) LoadVersion(ctx context.Context, id es.AggregateID, version int) (es.Snapshot[S], error) {
	if version < 1 {
		return es.Snapshot[S]{}, at(id, version, es.Invalid("version %d is below 1", version))
	}
	t := turn{turns: &r.turns, id: id}
	defer t.end()
	s, err := r.Fold(id, t.pass(ctx, false, r.Store.Load(ctx, id, es.Versions{To: version})))
	if err == nil && s.Version != version {
		err = es.ErrNotFound
	}
	if err != nil {
		return es.Snapshot[S]{}, at(id, version, err)
	}
	return s, nil
}

// Fold applies commits of an aggregate, from the first on, to a new state: those of a
// store's LoadAt, for the aggregate as it was at a point in time.
func (r *Repository[S]) Fold(id es.AggregateID, commits iter.Seq2[es.Commit, error]) (es.Snapshot[S], error) {
	s := fresh[S](id)
	if err := r.owns(id); err != nil {
		return s, at(id, 0, err)
	}
	for c, err := range commits {
		if err == nil {
			err = r.apply(&s, &c)
		}
		if err != nil {
			return fresh[S](id), at(id, c.Version, err)
		}
	}
	return s, nil
}

// live is an aggregate with what is known of its stored snapshot.
type live[S any] struct {
	es.Snapshot[S]
	// saved is what the stored snapshot says; zero where there is none.
	saved es.Meta
	// bad is a stored snapshot that cannot be used and must be replaced; nil = there is
	// none, or it has no bytes.
	bad []byte
}

func fresh[S any](id es.AggregateID) es.Snapshot[S] {
	return es.Snapshot[S]{Meta: es.Meta{Aggregate: id}}
}

// current is the state that cmd is decided on. Who creates decides on nothing.
func (r *Repository[S]) current(ctx context.Context, cmd *es.Command) (live[S], error) {
	if cmd.Create {
		return live[S]{Snapshot: fresh[S](cmd.Aggregate)}, nil
	}
	return r.load(ctx, cmd.Aggregate)
}

// load takes turns with other loads of the aggregate once it gets long, and begins anew
// after it had to wait: so of many that miss a snapshot, few read everything.
func (r *Repository[S]) load(ctx context.Context, id es.AggregateID) (live[S], error) {
	if err := r.owns(id); err != nil {
		return live[S]{}, err
	}
	t := turn{turns: &r.turns, id: id}
	defer t.end()
	now, err := r.read(ctx, &t, id)
	if errors.Is(err, errWaited) {
		now, err = r.read(ctx, &t, id)
	}
	return now, err
}

// read applies the events to the snapshot, or to nothing where there is none to use.
func (r *Repository[S]) read(ctx context.Context, t *turn, id es.AggregateID) (live[S], error) {
	now, err := r.snapshot(ctx, id)
	if err != nil {
		return now, err
	}
	if now.Version > 0 {
		err = r.follow(ctx, t, &now)
		if !errors.Is(err, errForeign) {
			return now, err
		}
		r.warn(ctx, unusable, &now.Meta, err)
		now = live[S]{Snapshot: fresh[S](id), bad: now.Stored}
	}
	now.Snapshot, err = r.Fold(id, r.commits(ctx, t, id, 1))
	return now, err
}

func (r *Repository[S]) commits(ctx context.Context, t *turn, id es.AggregateID, from int) iter.Seq2[es.Commit, error] {
	return t.pass(ctx, r.Snapshots != nil, r.Store.Load(ctx, id, es.Versions{From: from}))
}

// snapshot is the stored snapshot, or a fresh state where there is none to use. Trouble
// on the way to it is an error: replaying everything then would add to the trouble.
func (r *Repository[S]) snapshot(ctx context.Context, id es.AggregateID) (live[S], error) {
	none := live[S]{Snapshot: fresh[S](id)}
	if r.Snapshots == nil {
		return none, nil
	}
	s, err := r.Snapshots.Load(ctx, id)
	var bad *es.UnreadableSnapshot
	switch {
	case err == nil:
		return live[S]{Snapshot: s, saved: s.Meta}, nil
	case errors.Is(err, es.ErrNotFound):
		return none, nil
	case errors.As(err, &bad):
		r.warn(ctx, unusable, &none.Meta, err)
		none.bad = bad.Raw
		return none, nil
	}
	return none, err
}

// errForeign: the events do not lead to the snapshot. A failover or a restore lost
// them, or the aggregate was purged and begun anew.
var errForeign = errors.New("no event leads to the snapshot")

// follow applies what came after the snapshot. It begins with the commit that the
// snapshot was made from, which must still be there: so a snapshot is never believed
// against the events.
func (r *Repository[S]) follow(ctx context.Context, t *turn, now *live[S]) error {
	proved := false
	for c, err := range r.commits(ctx, t, now.Aggregate, now.Version) {
		switch {
		case err != nil:
			return err
		case proved:
			if err := r.apply(&now.Snapshot, &c); err != nil {
				return at(now.Aggregate, c.Version, err)
			}
		case now.EventID != "" && c.ID != now.EventID:
			return fmt.Errorf("%w: version %d is %s, not %s", errForeign, c.Version, c.ID, now.EventID)
		default:
			proved = true
		}
	}
	if !proved {
		return fmt.Errorf("%w: there is no version %d", errForeign, now.Version)
	}
	return nil
}

func at(id es.AggregateID, version int, err error) error {
	var e *es.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &es.Error{Op: "load", Aggregate: id, Version: version, Err: err}
}
