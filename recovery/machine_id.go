package recovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// What became of a machine number.
var (
	// ErrNoMachineFree: every number of the range is leased to somebody.
	ErrNoMachineFree = errors.New("no machine number is free")
	// ErrMachineLost: the lease ran out before it could be renewed, or somebody else
	// holds the number. Ids made with it are no longer unique.
	ErrMachineLost = errors.New("machine number is lost")
)

// settling is for how long a number that was given back stays taken, since the clocks of
// its old and its new holder differ.
const settling = time.Second

// MachineOptions are the knobs of [LeaseMachineID].
type MachineOptions struct {
	// From and To are the numbers to choose from, both included. Kotlin nodes know
	// nothing of these leases, so theirs must be others. Where both are 0 they are the
	// upper half of all there are, since Kotlin's machines are usually counted from 0.
	From, To int
	// Lease is how long a holder that fell silent keeps its number; it is renewed four
	// times as often. Defaults to a minute.
	Lease time.Duration
}

// MachineID is a machine number that nobody else holds who leases from the same Redis,
// for an [es.IDGenerator]. It is safe for concurrent use.
type MachineID struct {
	// Number is what [es.NewIDGenerator] takes.
	Number int

	rdb   redis.UniversalClient
	token string
	lease time.Duration

	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded was sent
	ended   bool
}

// LeaseMachineID leases a number of the range, chosen at random, by the clock of Redis.
// [MachineID.Keep] must run from then on. Where every number is taken it is an
// [ErrNoMachineFree]. Where Redis forgets leases (a flush, a failover that loses the last
// writes), a number may have two holders until the next renewal, which tells one of them.
func LeaseMachineID(ctx context.Context, rdb redis.UniversalClient, o MachineOptions) (*MachineID, error) {
	if o.From == 0 && o.To == 0 {
		o.From, o.To = (es.MaxMachine+1)/2, es.MaxMachine
	}
	if o.Lease == 0 {
		o.Lease = time.Minute
	}
	if o.From < 0 || o.To > es.MaxMachine || o.From > o.To {
		return nil, es.Invalid("machines %d to %d are not a range within 0 to %d", o.From, o.To, es.MaxMachine)
	}
	if o.Lease < 100*time.Millisecond {
		return nil, es.Invalid("a lease of %v is shorter than 100ms", o.Lease)
	}
	m := &MachineID{rdb: rdb, token: rand.Text(), lease: o.Lease}
	n := o.To - o.From + 1
	for i, first := 0, mathrand.IntN(n); i < n; i++ {
		m.Number = o.From + (first+i)%n
		switch err := m.renew(ctx); {
		case err == nil:
			return m, nil
		case !errors.Is(err, ErrMachineLost):
			return nil, &es.Error{Op: fmt.Sprintf("lease machine %d", m.Number), Err: err}
		}
	}
	return nil, &es.Error{Op: fmt.Sprintf("lease a machine of %d to %d", o.From, o.To), Err: ErrNoMachineFree}
}

// Held reports whether the number is certainly this holder's: nobody else can have it
// before the lease that was renewed last runs out, and three quarters of it have not
// passed. It asks no server, so whoever makes ids may ask as often as he likes.
func (m *MachineID) Held() bool { return m.left() > 0 }

// left is how long the number is certainly held, unless it is renewed.
func (m *MachineID) left() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return 0
	}
	// The monotonic clock stands still while a machine is suspended, the other may be set back.
	passed := max(time.Since(m.renewed), time.Now().Round(0).Sub(m.renewed.Round(0)))
	return m.lease*3/4 - passed
}

func (m *MachineID) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
}

// Keep renews the lease until ctx is done, then gives the number back and returns nil.
// Once the number is lost it returns an [ErrMachineLost]: whoever makes ids with it must
// stop, and lease another. Renewals that fail are repeated for as long as it is held.
func (m *MachineID) Keep(ctx context.Context) error {
	retry := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(m.lease/100), backoff.WithMaxInterval(m.lease/10), backoff.WithMaxElapsedTime(0))
	var last error
	for {
		pause := m.lease / 4
		if last != nil {
			pause = retry.NextBackOff()
		} else {
			retry.Reset()
		}
		select {
		case <-ctx.Done():
			return m.giveBack(ctx)
		case <-time.After(min(pause, m.left())):
		}
		if !m.Held() {
			return m.lost(last)
		}
		if last = m.renewWithin(ctx, m.left()); errors.Is(last, ErrMachineLost) {
			return m.lost(nil)
		}
	}
}

// renewWithin gives up once the number may be lost.
func (m *MachineID) renewWithin(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	done := make(chan error, 1) // a client may well not heed its context while it waits for a reply
	go func() { done <- m.renew(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *MachineID) lost(cause error) error {
	m.end()
	err := ErrMachineLost
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &es.Error{Op: fmt.Sprintf("keep machine %d", m.Number), Err: err}
}

// renew takes the number or takes it on; an [ErrMachineLost] where somebody else has it.
func (m *MachineID) renew(ctx context.Context) error {
	sent := time.Now()
	held, err := m.set(ctx, m.lease)
	if err == nil && !held {
		err = ErrMachineLost
	}
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.renewed = sent
	}
	return err
}

// giveBack leaves the number to others, once clocks have settled. Where that fails the
// lease runs out by itself.
func (m *MachineID) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	m.end()
	_, _ = m.set(ctx, min(settling, m.lease))
	return nil
}

func (m *MachineID) set(ctx context.Context, lease time.Duration) (held bool, err error) {
	key, patience := []string{rediskey.Machine(m.Number)}, m.lease/10
	reply, err := redisrun.Do(ctx, patience, func() (any, error) {
		return lua.LeaseMachine.Run(ctx, m.rdb, key, m.token, milliseconds(lease))
	})
	return reply == "held", err
}
