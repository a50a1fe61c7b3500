package eventbus

import (
	"context"
	"errors"
	"slices"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/recovery"
)

// Compensate replays a dead letter of one function (see [es.Functions]) with the commit as
// the store has it, which carries the compensate.* headers then: that function alone is
// called, in its group alone. A letter of no function is replayed as it is. A commit that
// the store does not have, since a failover lost it or the aggregate was purged, is an
// [es.ErrCorrupt], and its letter stays; [recovery.DeadLetters.Replay] takes it as it is.
func (b *Bus) Compensate(ctx context.Context, store es.Finder, l recovery.Letter) (retry string, err error) {
	letters := recovery.NewDeadLetters(b.rdb)
	if l.Function == (es.Function{}) {
		return letters.Replay(ctx, l.Topic, l.ID)
	}
	message, err := b.again(ctx, store, &l)
	if err != nil {
		return "", &es.Error{Op: "compensate " + l.Function.String() + " by dead letter " + l.ID + " of " + l.Topic, Err: err}
	}
	return letters.ReplayAs(ctx, l, recovery.Fields{redisstream.Field, string(message)})
}

// again is the message of a letter, made anew from the store.
func (b *Bus) again(ctx context.Context, store es.Finder, l *recovery.Letter) ([]byte, error) {
	data, ok := l.Fields.Get(redisstream.Field)
	if !ok {
		return nil, es.Corrupt("the letter has no field %q", redisstream.Field)
	}
	sent, err := b.codec.DecodeCommit([]byte(data))
	if err != nil {
		return nil, err
	}
	stored, err := store.Find(ctx, sent.Aggregate, sent.Version)
	switch {
	case errors.Is(err, es.ErrNotFound):
		return nil, es.Corrupt("the store has no version %d of %s", sent.Version, sent.Aggregate)
	case err != nil:
		return nil, err
	case stored.ID != sent.ID:
		return nil, es.Corrupt("the store has commit %s at version %d of %s, not %s", stored.ID, sent.Version, sent.Aggregate, sent.ID)
	}
	stored.Header = slices.Clone(stored.Header)
	stored.Header.Compensate(l.ID, l.Function)
	return b.codec.EncodeCommit(&stored)
}
