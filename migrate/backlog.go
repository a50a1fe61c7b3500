package migrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// backlog finds groups that have not handled all messages of a type's topics: messages
// are no part of a migration.
func (r *auditor) backlog(ctx context.Context, t es.AggregateType) error {
	for _, topic := range []string{rediskey.Command(t), rediskey.Event(t), rediskey.State(t)} {
		last, err := do(ctx, r.server, func() ([]redis.XMessage, error) { return r.rdb.XRevRangeN(ctx, topic, "+", "-", 1).Result() })
		if isWrongType(err) || err == nil && len(last) == 0 {
			continue
		}
		if err != nil {
			return err
		}
		groups, err := do(ctx, r.server, func() ([]redis.XInfoGroup, error) { return r.rdb.XInfoGroups(ctx, topic).Result() })
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		for _, g := range groups {
			if g.Pending == 0 && !before(g.LastDeliveredID, last[0].ID) {
				continue
			}
			detail := fmt.Sprintf("group %q: %d pending, read up to %s of %s", g.Name, g.Pending, g.LastDeliveredID, last[0].ID)
			if err := r.found(r.problem(Backlog, topic, detail)); err != nil {
				return err
			}
		}
	}
	return nil
}

// before orders ids of entries.
func before(a, b string) bool {
	ams, aseq := entryID(a)
	bms, bseq := entryID(b)
	return ams < bms || ams == bms && aseq < bseq
}

func entryID(s string) (ms, seq uint64) {
	first, second, _ := strings.Cut(s, "-")
	ms, _ = strconv.ParseUint(first, 10, 64) // Redis wrote it
	seq, _ = strconv.ParseUint(second, 10, 64)
	return ms, seq
}

// otherDatabases tells of keys that this audit does not see.
func (r *auditor) otherDatabases(ctx context.Context) error {
	if r.place.Mode == "cluster" {
		return nil
	}
	info, err := r.info(ctx, r.rdb)
	if err != nil {
		return r.blame(ctx, err)
	}
	for name, value := range info {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "db"))
		if !strings.HasPrefix(name, "db") || err != nil || n == r.place.Database {
			continue
		}
		keys, _, _ := strings.Cut(strings.TrimPrefix(value, "keys="), ",")
		if err := r.found(r.problem(OtherDatabase, "", fmt.Sprintf("database %d holds %s keys: audit it, too", n, keys))); err != nil {
			return err
		}
	}
	return nil
}
