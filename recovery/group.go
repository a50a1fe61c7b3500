package recovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// Defaults of a [Group].
const (
	DefaultLease          = 15 * time.Second
	DefaultMinIdleForeign = 5 * time.Minute
)

var (
	// ErrNotOwner says that the entry belongs to another consumer by now, or is no longer
	// pending. What this consumer made of it does not count.
	ErrNotOwner = errors.New("entry belongs to another consumer")
	// ErrLeft says that the consumer has left its group, for good.
	ErrLeft = errors.New("consumer has left")
	// ErrLeaseTaken says that another process holds Wow's lease of a consumer of this name.
	ErrLeaseTaken = errors.New("another process has the consumer's name")
)

// Group is one consumer's hold on a topic's group. It has no goroutines: whoever reads
// calls [Group.Renew] before the first read and then three times a lease, and
// [Group.Sweep] now and then. It is safe for concurrent use once its fields are set.
//
// The stream that its verbs take is the topic, or the group's retry stream.
type Group struct {
	Topic, Name string
	// Consumer is this consumer's name, which no other process may use.
	Consumer string
	// Lease is how long the consumer may fall silent. Defaults to [DefaultLease].
	Lease time.Duration
	// MinIdleForeign is how long an entry of a consumer without a deadline, which is a
	// Kotlin one, must be idle to be claimed. Defaults to [DefaultMinIdleForeign].
	MinIdleForeign time.Duration
	// SharedWithWow also holds the lease that Kotlin peers look at.
	SharedWithWow bool
	// DeleteAcked has [Group.Ack] delete what no group needs any more.
	DeleteAcked bool
	// Observer is told of an [es.LeaseLost]. A panic of it is swallowed. Defaults to none.
	Observer es.Observer
	// Patience is how long a server may be loading, electing a master or busy before a
	// call fails as [es.ErrUnavailable]. Defaults to 5 s.
	Patience time.Duration

	rdb   redis.UniversalClient
	token string // of Wow's lease

	leasing  chan struct{} // holds one while a lease is written
	sweeping chan struct{} // holds one while a sweep runs

	mu       sync.Mutex
	deadline int64 // what the server last answered, in ms by its clock; 0 before the first
	held     bool  // Wow's lease was held before
	left     bool
	// Until then nothing is claimed (quiet), and nothing but from who left (new).
	quietUntil, newUntil time.Time
	trouble              time.Time // when a renewal last failed or was slow

	looks map[string]*look // by stream; the sweep's own
}

// NewGroup is consumer's hold on the group name of topic. Nothing is written before
// [Group.Renew].
func NewGroup(rdb redis.UniversalClient, topic, name, consumer string) *Group {
	return &Group{
		Topic: topic, Name: name, Consumer: consumer, rdb: rdb, token: rand.Text(),
		leasing: make(chan struct{}, 1), sweeping: make(chan struct{}, 1), looks: map[string]*look{},
	}
}

// Retry is the stream of what is replayed to this group.
func (g *Group) Retry() string { return rediskey.Retry(g.Topic, g.Name) }

// Renew moves the consumer's deadline to one lease from now, by the server's clock; one
// failed renewal harms nothing while the deadline has not passed.
//
// After a late one, which found the deadline passed or lost, [Group.Sweep] claims
// nothing for a whole lease: whatever kept this consumer from renewing may have kept its
// peers. After one that failed or was slow, peers whose deadline passed meanwhile get half
// a lease to renew it. For one lease from its first renewal it claims only from who has left.
func (g *Group) Renew(ctx context.Context) error {
	if err := enter(ctx, g.leasing); err != nil {
		return g.fail("renew the lease of", err)
	}
	defer leave(g.leasing)
	began := time.Now()
	err := g.renew(ctx)
	g.note(began, err)
	return g.fail("renew the lease of", err)
}

func (g *Group) renew(ctx context.Context) error {
	g.mu.Lock()
	known, left := g.deadline, g.left
	g.mu.Unlock()
	if left {
		return ErrLeft
	}
	err := g.renewDeadline(ctx, known)
	if g.SharedWithWow {
		err = errors.Join(err, g.holdWowLease(ctx))
	}
	return err
}

func (g *Group) renewDeadline(ctx context.Context, known int64) error {
	stood := ""
	if known != 0 {
		stood = fmt.Sprint(known)
	}
	reply, err := g.run(ctx, lua.RenewLease, []string{rediskey.Leases(g.Topic, g.Name)}, g.Consumer, g.lease().Milliseconds(), stood)
	if err != nil {
		return err
	}
	answer, _ := reply.([]any)
	if len(answer) != 2 {
		return unexpected(reply)
	}
	deadline, ok := answer[1].(int64)
	if !ok {
		return unexpected(reply)
	}
	if answer[0] == "late" {
		_ = es.Tell(ctx, g.Observer, es.LeaseLost{Topic: g.Topic, Group: g.Name, Consumer: g.Consumer})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = deadline
	now := time.Now()
	if known == 0 {
		g.newUntil = now.Add(g.lease())
	}
	if answer[0] == "late" {
		g.quietUntil = now.Add(g.lease())
	}
	return nil
}

func (g *Group) holdWowLease(ctx context.Context) error {
	first := "first"
	if g.held { // leasing guards it
		first = ""
	}
	key := rediskey.WowLease(g.Topic, g.Name, g.Consumer)
	reply, err := g.run(ctx, lua.HoldWowLease, []string{key}, g.token, g.lease().Milliseconds(), first)
	switch {
	case err != nil:
		return err
	case reply == "taken":
		return ErrLeaseTaken
	case reply != "held":
		return unexpected(reply)
	}
	g.held = true
	return nil
}

// Leave ends the lease: peers take the consumer's entries at their next sweep. Give back
// what was not handled first; [Group.Renew] is an [ErrLeft] from now on. Where the
// server refuses it, its memory being full, the deadline passes by itself.
func (g *Group) Leave(ctx context.Context) error {
	if err := enter(ctx, g.leasing); err != nil {
		return g.fail("leave", err)
	}
	defer leave(g.leasing)
	g.mu.Lock()
	g.left = true
	g.mu.Unlock()
	_, err := do(ctx, g, func() (int64, error) {
		return g.rdb.ZAdd(ctx, rediskey.Leases(g.Topic, g.Name), redis.Z{Member: g.Consumer}).Result()
	})
	if g.SharedWithWow {
		_, dropped := g.run(ctx, lua.DropWowLease, []string{rediskey.WowLease(g.Topic, g.Name, g.Consumer)}, g.token)
		err = errors.Join(err, dropped)
	}
	return g.fail("leave", err)
}

// claims says whether this consumer may claim: not at all, from who has left, from all.
func (g *Group) claims() (some, all bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	some = g.deadline != 0 && !g.left && !now.Before(g.quietUntil)
	return some, some && !now.Before(g.newUntil)
}

func (g *Group) lease() time.Duration {
	if g.Lease > 0 {
		return g.Lease
	}
	return DefaultLease
}

func (g *Group) minIdleForeign() time.Duration {
	if g.MinIdleForeign > 0 {
		return g.MinIdleForeign
	}
	return DefaultMinIdleForeign
}

// failure is the field of an entry's failures, in a hash for both streams.
func (g *Group) failure(stream, id string) string { return g.failurePrefix(stream) + id }

func (g *Group) failurePrefix(stream string) string {
	if stream == g.Topic {
		return ""
	}
	return "retry:"
}

func (g *Group) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s in group %s of %s: %w", op, g.Consumer, g.Name, g.Topic, err)
}

func (g *Group) run(ctx context.Context, s lua.Script, keys []string, args ...any) (any, error) {
	return do(ctx, g, func() (any, error) { return s.Run(ctx, g.rdb, keys, args...) })
}

// do runs f through [redisrun.Do], unless ctx is done already and nothing is sent.
func do[T any](ctx context.Context, g *Group, f func() (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	return redisrun.Do(ctx, g.Patience, f)
}

// enter waits for its turn.
func enter(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func leave(turn chan struct{}) { <-turn }

func unexpected(reply any) error {
	return es.Corrupt("unexpected answer %q of a script", fmt.Sprint(reply))
}
