package recovery

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// Lease is an [es.Lease] by the clock of Redis, such as for an aggregate.Relay: of all
// that were made with the same name, one at a time holds it. It is safe for concurrent
// use. Where Redis forgets it (a flush, a failover that loses the last writes), two may
// hold it until the next renewal.
type Lease struct {
	rdb        redis.UniversalClient
	key, token string
}

// NewLease is a lease that nobody holds yet.
func NewLease(rdb redis.UniversalClient, name string) *Lease {
	return &Lease{rdb: rdb, key: rediskey.Lease(name), token: rand.Text()}
}

// Hold implements [es.Lease]. A millisecond is the shortest time there is.
func (l *Lease) Hold(ctx context.Context, d time.Duration) (bool, error) {
	reply, err := redisrun.Do(ctx, d/10, func() (any, error) {
		return lua.LeaseMachine.Run(ctx, l.rdb, []string{l.key}, l.token, milliseconds(d))
	})
	if err != nil {
		return false, &es.Error{Op: "hold lease " + l.key, Err: err}
	}
	return reply == "held", nil
}
