package recovery

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/lua"
)

// What one sweep may cost.
const (
	pageSize = 100 // entries of one look, and of one claim
	maxPages = 10  // looks at one consumer's list
)

// Swept is what a sweep has done.
type Swept struct {
	// Claimed counts the entries taken over from other consumers.
	Claimed int
	// Found counts the consumer's own entries that it did not hold.
	Found int
	// Gone are pending entries whose record was deleted or trimmed away. They are
	// acknowledged, so each is reported once.
	Gone []string
	// Looked says that the server has answered, and First is then the first entry that
	// the group had pending as the sweep began; "" if there was none.
	Looked bool
	First  string
	// Waits says that other consumers' entries were passed over since this consumer's
	// own lease is new, was renewed late, or has passed.
	Waits bool
	// More says that the sweep ended at its limits, not for want of entries.
	More bool
}

// Sweep takes over what dead consumers of the group left behind in the stream, limit
// entries at most (0 = 100), and hands it to take, page by page. A consumer is dead when
// its deadline has passed or it has left; one that has no deadline is a Kotlin one, dead
// when it holds no lease of Wow's, for entries idle long enough. What cannot be found
// out counts as alive.
//
// It also finds the consumer's own entries for which held is false, which happens where
// the reply to a read was lost: in two sweeps running, and idle for a lease. So held
// must be true from the moment take is given an entry, or a read returns it, until it is
// acknowledged, buried or given back. Neither may call Sweep.
//
// On an error, what take was given before is the caller's all the same.
func (g *Group) Sweep(ctx context.Context, stream string, limit int, held func(id string) bool, take func([]Entry)) (Swept, error) {
	if err := enter(ctx, g.sweeping); err != nil {
		return Swept{}, g.fail("sweep by", err)
	}
	defer leave(g.sweeping)
	if limit <= 0 {
		limit = pageSize
	}
	if g.looks[stream] == nil {
		g.looks[stream] = &look{reached: map[string]string{}}
	}
	s := &sweep{Group: g, look: g.looks[stream], stream: stream, left: limit, held: held, take: take}
	err := s.run(ctx)
	return s.swept, g.fail("sweep by", err)
}

// look is what one sweep of a stream leaves to the next.
type look struct {
	// suspects are entries of this consumer that it did not hold.
	suspects []string
	// reached is where the last look at a consumer's list ended, if not at its end.
	reached map[string]string
	// passed are the owners whose deadline had passed at the last look.
	passed map[string]sighting
	// failures is where the last look at the failures ended.
	failures uint64
}

// sweep is one call of [Group.Sweep].
type sweep struct {
	*Group
	*look
	stream string
	left   int // how many entries may still be taken
	held   func(id string) bool
	take   func([]Entry)
	swept  Swept
}

// The states of an owner.
const (
	hasLeft   = "left"
	hasPassed = "passed" // its deadline has
	isAbsent  = "absent" // it has no deadline here
)

// owner is a consumer with pending entries that is not known to be alive.
type owner struct{ name, state, deadline string }

func (s *sweep) run(ctx context.Context) error {
	keys := []string{s.stream, rediskey.Leases(s.Topic, s.Name), rediskey.Failed(s.Topic, s.Name)}
	reply, err := s.Group.run(ctx, lua.FindOwners, keys, s.Name, s.Consumer)
	if err != nil {
		return err
	}
	if reply == "late" {
		s.swept.Waits = true
		return nil
	}
	own, failures, first, owners, err := readOwners(reply)
	if err != nil {
		return err
	}
	s.swept.Looked, s.swept.First = true, first
	maps.DeleteFunc(s.reached, func(name, _ string) bool { // who has nothing pending any more
		return name != s.Consumer && !slices.ContainsFunc(owners, func(o owner) bool { return o.name == name })
	})
	s.see(owners)
	if own > 0 || len(s.suspects) > 0 {
		if err := s.findOwn(ctx); err != nil {
			return err
		}
	}
	if err := s.claimAll(ctx, owners); err != nil {
		return err
	}
	if failures > 0 {
		return s.forgetFailures(ctx)
	}
	return nil
}

func readOwners(reply any) (own, failures int64, first string, owners []owner, err error) {
	items, _ := reply.([]any)
	if len(items) < 3 || len(items)%3 != 0 {
		return 0, 0, "", nil, unexpected(reply)
	}
	own, isOwn := items[0].(int64)
	failures, isFailures := items[1].(int64)
	names, err := textsOf(items[2:])
	if !isOwn || !isFailures || err != nil {
		return 0, 0, "", nil, unexpected(reply)
	}
	for o := range slices.Chunk(names[1:], 3) {
		owners = append(owners, owner{o[0], o[1], o[2]})
	}
	return own, failures, names[0], owners, nil
}

// claimAll claims from all owners; in another order each time, so that peers who sweep
// at once don't all begin with the same one.
func (s *sweep) claimAll(ctx context.Context, owners []owner) error {
	rand.Shuffle(len(owners), func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
	for _, o := range owners {
		some, all := s.claims()
		if !some || !all && o.state != hasLeft || o.state == hasPassed && !s.surely(o) {
			s.swept.Waits = true
			continue
		}
		if s.left == 0 {
			s.swept.More = true
			return nil
		}
		if err := s.claimFrom(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// claimFrom goes through one consumer's list; what cannot be claimed yet hides nothing
// behind it.
func (s *sweep) claimFrom(ctx context.Context, o owner) error {
	var idle time.Duration
	if o.state == isAbsent {
		idle = s.minIdleForeign()
		if !s.wowLeaseMissing(ctx, o.name) {
			return nil
		}
	}
	return s.pages(ctx, o.name, func(page []redis.XPendingExt) (bool, error) {
		var ids []string
		for _, p := range page {
			if p.Idle >= idle {
				ids = append(ids, p.ID)
			}
		}
		if len(ids) == 0 {
			return true, nil
		}
		// Asked again just before the claim: it is all that tells whether it lives.
		if o.state == isAbsent && !s.wowLeaseMissing(ctx, o.name) {
			return false, nil
		}
		entries, goOn, err := s.claim(ctx, o, ids)
		s.swept.Claimed += len(entries)
		return goOn, err
	})
}

// pages calls f with one page of a consumer's pending entries after the other, and goes
// on next time where it has to stop.
func (s *sweep) pages(ctx context.Context, consumer string, f func([]redis.XPendingExt) (bool, error)) error {
	start := s.reached[consumer]
	delete(s.reached, consumer)
	if start == "" {
		start = "-"
	}
	for n := range maxPages {
		size := pageSize
		if consumer != s.Consumer {
			size = min(size, s.left)
		}
		page, err := do(ctx, s.Group, func() ([]redis.XPendingExt, error) {
			return s.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{
				Stream: s.stream, Group: s.Name, Start: start, End: "+", Count: int64(size), Consumer: consumer,
			}).Result()
		})
		if err != nil || len(page) == 0 {
			return err
		}
		goOn, err := f(page)
		if err != nil || !goOn || len(page) < size {
			return err
		}
		start, err = following(page[len(page)-1].ID)
		if err != nil {
			return err
		}
		full := consumer != s.Consumer && s.left == 0
		if full || n == maxPages-1 {
			s.reached[consumer] = start
			s.swept.More = s.swept.More || full
			return nil
		}
	}
	return nil
}

// following is the id just after one. Not every server takes a "(" here.
func following(id string) (string, error) {
	at, err := parseID(id)
	if err != nil {
		return "", err
	}
	if at.sequence++; at.sequence == 0 {
		at.ms++
	}
	return fmt.Sprintf("%d-%d", at.ms, at.sequence), nil
}

// wowLeaseMissing says that the server has confirmed that a Kotlin consumer holds no
// lease. An error confirms nothing.
func (s *sweep) wowLeaseMissing(ctx context.Context, consumer string) bool {
	n, err := do(ctx, s.Group, func() (int64, error) {
		return s.rdb.Exists(ctx, rediskey.WowLease(s.Topic, s.Name, consumer)).Result()
	})
	return err == nil && n == 0
}
