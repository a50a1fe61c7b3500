package redisstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

// subscription is one running Subscribe.
type subscription struct {
	Config
	rdb    redis.UniversalClient
	decode Decoder
	handle Handler
	lanes  *lanes
	topics []*topic
	log    *limiter
	// conditions are those of the topics, in their order.
	conditions []*condition
	// suspect is held while an entry is handled that several consumers died with.
	suspect sync.Mutex
}

// Subscribe prepares the groups, reads them, and hands each message to h, until ctx is
// done. Then it reads no more, gives the handlers that run their grace, acknowledges
// what is done, gives the rest back to the group without spending an attempt, and
// returns nil, a second after the grace at the latest: what a handler that does not heed
// its context has in hand goes to others. It returns an error only where it could not
// begin; a server that refuses writes for now, and whatever happens to it afterwards, it
// waits out.
func Subscribe(ctx context.Context, rdb redis.UniversalClient, c Config, d Decoder, h Handler) error {
	s := &subscription{Config: c.withDefaults(), decode: d, handle: h}
	s.log = newLimiter(s.Logger)
	if err := s.validate(); err != nil {
		return err
	}
	var done func()
	s.rdb, done = masters(rdb)
	defer done()
	defer s.begun(ctx)()
	if err := s.prepare(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	s.lanes = newLanes(max(s.Prefetch, len(s.Topics)), s.PrefetchBytes)
	reads, err := readingClient(s.rdb, len(s.Topics))
	if err != nil {
		return err
	}
	defer reads.close()
	for i := range s.Topics {
		s.topics = append(s.topics, newTopic(s, s.conditions[i], reads))
	}
	s.run(ctx)
	return nil
}

// prepare makes the groups; nil where ctx has ended first.
func (s *subscription) prepare(ctx context.Context) error {
	for ctx.Err() == nil {
		err := Prepare(ctx, s.rdb, s.Config)
		if err == nil {
			err = recovery.Register(ctx, s.rdb, s.Topics...)
		}
		switch {
		case err == nil:
			for _, c := range s.conditions {
				s.can(ctx, c, toBegin)
			}
			return nil
		case errors.Is(err, es.ErrUnavailable):
		case errors.Is(err, context.Cause(ctx)), ctx.Err() != nil && errors.Is(err, es.ErrUncertain):
			return nil // it was to end before it had begun
		default:
			return err
		}
		s.log.Warn(ctx, "subscription cannot begin; trying on", "topics", s.Topics, "group", s.Group, "reason", err)
		for _, c := range s.conditions {
			s.cannot(ctx, c, toBegin, err)
		}
		pause(ctx, time.Second)
	}
	return nil
}

// closing is how long a stop may take, besides the grace.
const closing = 900 * time.Millisecond

func (s *subscription) run(ctx context.Context) {
	// Handlers outlive ctx by the grace; leases and acknowledgements still longer.
	handling, endHandling := context.WithCancel(context.WithoutCancel(ctx))
	defer endHandling()
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	leasing, endLeasing := context.WithCancel(lasting)
	defer endLeasing()
	noMore := make(chan struct{})
	var working, settling, keeping sync.WaitGroup
	for _, t := range s.topics {
		working.Go(func() { t.read(ctx) })
		keeping.Go(func() { t.look(ctx) })
		keeping.Go(func() { t.keep(leasing) })
		settling.Go(func() { t.settle(lasting, noMore) })
	}
	for range s.Workers {
		working.Go(func() { s.work(ctx, handling) })
	}
	<-ctx.Done()
	s.lanes.close()
	defer time.AfterFunc(s.Grace, endHandling).Stop()
	defer time.AfterFunc(s.Grace+closing, end).Stop()

	patient, cancel := context.WithTimeout(lasting, s.Grace+closing/3)
	defer cancel()
	if !within(patient, working.Wait) {
		s.log.Warn(ctx, "handlers did not end in time; what they have goes to others", "topics", s.Topics, "group", s.Group)
	}
	close(noMore)
	within(lasting, settling.Wait)
	endLeasing()
	within(lasting, keeping.Wait)
	s.leave(lasting)
}

// leave lets go of all topics, for a second at most.
func (s *subscription) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closing)
	defer cancel()
	var leaving sync.WaitGroup
	for _, t := range s.topics {
		leaving.Go(func() { t.leave(ctx) })
	}
	within(ctx, leaving.Wait)
}

// within waits for f until ctx is done, and reports whether f has ended: calls to a
// server that does not answer take their time.
func within(ctx context.Context, f func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
		return false
	}
}
