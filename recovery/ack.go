package recovery

import (
	"context"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/lua"
)

// batch limits the entries of one script: it holds the server while it runs.
const batch = 500

// Ack acknowledges entries that this consumer owns, and forgets their failures. lost are
// those that another consumer owns by now, which stay as they are. What nobody owns was
// acknowledged before, be it by a call whose reply was lost. Many ids are sent in several
// batches: after an error, those of the first ones may be acknowledged.
//
// With DeleteAcked it deletes from the stream what it acknowledges, and what was
// acknowledged before, unless another group has yet to read or to acknowledge it.
func (g *Group) Ack(ctx context.Context, stream string, ids []string) (lost []string, err error) {
	sorted, err := sortIDs(ids)
	if err != nil {
		return nil, g.fail("ack by", err)
	}
	keys := []string{stream, rediskey.Failed(g.Topic, g.Name)}
	deletes := ""
	if g.DeleteAcked {
		deletes = "delete"
	}
	for part := range slices.Chunk(sorted, batch) {
		reply, err := g.run(ctx, lua.AckEntries, keys, g.arguments(part, g.failurePrefix(stream), deletes)...)
		if err != nil {
			return lost, g.fail("ack by", err)
		}
		texts, err := textsOf(reply)
		if err != nil {
			return lost, g.fail("ack by", err)
		}
		lost = append(lost, texts...)
	}
	return lost, nil
}

// GiveBack takes back the delivery of entries that were read and not handled, so that it
// counts for nothing; call it before [Group.Leave]. They stay this consumer's until it
// has left. What was claimed and never raised needs no giving back.
func (g *Group) GiveBack(ctx context.Context, stream string, ids []string) error {
	for part := range slices.Chunk(ids, batch) {
		if _, err := g.run(ctx, lua.GiveBack, []string{stream}, g.arguments(part)...); err != nil {
			return g.fail("give back by", err)
		}
	}
	return nil
}

// Raise counts one more delivery of an entry that this consumer has claimed, or found
// again, just before it handles it, so that a message that kills its handlers is known
// by its count. It returns the new count. An entry that is not its own, or whose record
// is gone, is an [ErrNotOwner].
func (g *Group) Raise(ctx context.Context, stream, id string) (deliveries int, err error) {
	reply, err := g.run(ctx, lua.RaiseEntry, []string{stream}, g.Name, g.Consumer, id)
	count, ok := reply.(int64)
	switch {
	case err != nil:
	case reply == "not owner":
		err = ErrNotOwner
	case !ok:
		err = unexpected(reply)
	}
	return int(count), g.fail("raise "+id+" by", err)
}

// Owns says whether an entry is this consumer's own now. It only reads, so that a server
// that refuses writes can answer.
func (g *Group) Owns(ctx context.Context, stream, id string) (bool, error) {
	own, err := do(ctx, g, func() ([]redis.XPendingExt, error) {
		return g.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: stream, Group: g.Name, Start: id, End: id, Count: 1, Consumer: g.Consumer}).Result()
	})
	return len(own) > 0, g.fail("owner of "+id+" as", err)
}

// arguments are the group, the consumer, others, and ids.
func (g *Group) arguments(ids []string, others ...any) []any {
	args := make([]any, 0, len(ids)+len(others)+2)
	args = append(append(args, g.Name, g.Consumer), others...)
	for _, id := range ids {
		args = append(args, id)
	}
	return args
}

// sortIDs is ids in the order of the stream.
func sortIDs(ids []string) ([]string, error) {
	at := make(map[string]entryID, len(ids))
	for _, id := range ids {
		var err error
		if at[id], err = parseID(id); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Keys(at), func(a, b string) int { return at[a].compare(at[b]) }), nil
}

// textsOf is a reply that is a list of texts.
func textsOf(reply any) ([]string, error) {
	items, ok := reply.([]any)
	if !ok {
		return nil, unexpected(reply)
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if texts[i], ok = item.(string); !ok {
			return nil, unexpected(reply)
		}
	}
	return texts, nil
}
