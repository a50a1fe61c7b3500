package preparekey

import (
	"context"
	"log/slog"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// Ready is an [es.ErrEviction] where a server may evict reservations when its memory is
// full. Reservations have no expiry, so a volatile policy is one to warn of and no
// error; so is a server that does not say. A service calls it before it takes commands.
func (k *Keys[V]) Ready(ctx context.Context) error {
	log := k.Logger
	if log == nil {
		log = slog.Default()
	}
	if err := redisrun.CheckEviction(ctx, k.rdb, k.Patience, log); err != nil {
		return &es.Error{Op: "prepare keys ready", Err: err}
	}
	return nil
}
