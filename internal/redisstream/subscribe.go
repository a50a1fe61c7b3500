package redisstream

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

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
}

// Subscribe prepares the groups, reads them, and hands each message to h, until ctx is
// done. Then it reads no more, gives the handlers that run their grace, acknowledges
// what is done, gives the rest back to the group without spending an attempt, and
// returns nil. It returns an error only where it could not begin; afterwards it waits
// out whatever happens to the server.
func Subscribe(ctx context.Context, rdb redis.UniversalClient, c Config, d Decoder, h Handler) error {
	if err := Prepare(ctx, rdb, c); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if err := recovery.Register(ctx, rdb, c.Topics...); err != nil && ctx.Err() == nil {
		return err
	}
	s := &subscription{Config: c.withDefaults(), rdb: rdb, decode: d, handle: h}
	s.lanes, s.log = newLanes(s.Prefetch), newLimiter(s.Logger)
	reads, err := readingClient(rdb, len(s.Topics))
	if err != nil {
		return err
	}
	defer reads.close()
	for _, name := range s.Topics {
		s.topics = append(s.topics, newTopic(s, name, reads))
	}
	s.run(ctx)
	return nil
}

func (s *subscription) run(ctx context.Context) {
	// Handlers, acknowledgements and renewals outlive ctx by the grace.
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var readers, workers, keepers, settlers sync.WaitGroup
	for _, t := range s.topics {
		readers.Go(func() { t.read(ctx) })
		keepers.Go(func() { t.keep(ctx, lasting) })
		settlers.Go(func() { t.settle(lasting) })
	}
	for range s.Workers {
		workers.Go(func() { s.work(lasting) })
	}
	<-ctx.Done()
	s.lanes.close()
	grace := time.AfterFunc(s.Grace, end)
	defer grace.Stop()
	readers.Wait()
	workers.Wait()
	for _, t := range s.topics {
		close(t.handled)
	}
	settlers.Wait()
	end()
	keepers.Wait()
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, t := range s.topics {
		t.leave(leaving)
	}
}
