package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisstream"
)

// producers is how many producers there are; each has aggregates of its own, so that the
// numbers of an aggregate are sent in order.
const producers = 8

// Producers send numbers until they are told to stop, and each one until its arrival is
// confirmed.
type Producers struct {
	rdb      redis.UniversalClient
	commands *commandbus.Bus
	events   *eventbus.Bus
	rate     int

	next atomic.Int64
	// Sent counts the confirmed numbers, Unsure the calls that failed and were made again,
	// Garbage the entries that no reader can decode.
	Sent, Unsure, Garbage atomic.Int64

	mu        sync.Mutex
	confirmed []int
}

// NewProducers sends rate numbers a second.
func NewProducers(rdb redis.UniversalClient, rate int) *Producers {
	return &Producers{rdb: rdb, commands: commandbus.New(rdb, Codec()), events: eventbus.New(rdb, Codec()), rate: rate}
}

// Confirmed are the numbers that have arrived.
func (p *Producers) Confirmed() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]int(nil), p.confirmed...)
}

// Run sends until ctx is done, and what was begun then until it is confirmed or the
// patience ends.
func (p *Producers) Run(ctx context.Context, patience time.Duration) {
	var running sync.WaitGroup
	for i := range producers {
		running.Go(func() {
			versions := map[es.AggregateID]int{}
			tick := time.NewTicker(producers * time.Second / time.Duration(p.rate))
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					p.one(ctx, i, versions, patience)
				}
			}
		})
	}
	running.Wait()
}

func (p *Producers) one(ctx context.Context, i int, versions map[es.AggregateID]int, patience time.Duration) {
	t := Types[rand.N(len(Types))]
	id := t.ID(fmt.Sprintf("%s-%d", t.Name, i+producers*rand.N(Aggregates/producers)))
	n := int(p.next.Add(1))
	if n%401 == 0 {
		p.garbage(ctx, t, n)
	}
	versions[id]++
	send := p.sender(id, n, versions[id])
	var until time.Time
	for send(context.WithoutCancel(ctx)) != nil {
		p.Unsure.Add(1)
		if ctx.Err() != nil && until.IsZero() {
			until = time.Now().Add(patience)
		}
		if !until.IsZero() && time.Now().After(until) {
			return
		}
		time.Sleep(50*time.Millisecond + rand.N(100*time.Millisecond))
	}
	p.Sent.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.confirmed = append(p.confirmed, n)
}

// sender sends the same message each time that it is called.
func (p *Producers) sender(id es.AggregateID, n, version int) func(context.Context) error {
	name := fmt.Sprintf("n-%d", n)
	if IsCommand(n) {
		c := es.NewCommand(id, Do{n})
		c.ID, c.RequestID = name, name
		return func(ctx context.Context) error { return p.commands.Send(ctx, c) }
	}
	c := es.Commit{
		ID: name, Aggregate: id, CommandID: "c" + name, RequestID: name, Version: version,
		Events: []es.Event{es.NewEvent("e"+name, Done{n})}, CreateTime: time.Now().Truncate(time.Millisecond).UTC(),
	}
	return func(ctx context.Context) error { return p.events.Publish(ctx, c) }
}

// garbage adds an entry that nobody can decode; whether it arrived shows in the stream.
func (p *Producers) garbage(ctx context.Context, t es.AggregateType, n int) {
	values := []any{redisstream.Field, fmt.Sprintf(`{"number":%d`, n)}
	switch n % 3 {
	case 1:
		values = []any{"other", n}
	case 2:
		values = []any{redisstream.Field, "\xff\x00\xfe"}
	}
	topic := rediskey.Event(t)
	if IsCommand(n) {
		topic = rediskey.Command(t)
	}
	_ = p.rdb.XAdd(ctx, &redis.XAddArgs{Stream: topic, Values: values}).Err()
	p.Garbage.Add(1)
}
