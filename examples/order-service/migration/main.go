// Command migration shows a migration from an older layout of Wow, with the example's
// order log: it writes the log's events as Wow 3.16 to 8.6 stored them, audits, copies,
// verifies and finishes, and then has the order service count its totals, and find every
// command carried out already.
//
//	make migrate-demo
//	go run ./examples/order-service/migration redis://localhost:6379/0   # an empty database
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
	"github.com/headwater-go/headwater/examples/order-service/replay"
	"github.com/headwater-go/headwater/examples/order-service/shop"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/redisurl"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/migrate"
	"github.com/headwater-go/headwater/wire"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "migration:", err)
		os.Exit(1)
	}
}

var types = []es.AggregateType{order.Type, item.Type, parcel.Type}

// workers is how many commands are carried out at a time.
const workers = 64

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: migration redis://host:port/database")
	}
	rdb, _, err := redisurl.Connect(ctx, args[0])
	if err != nil {
		return err
	}
	defer rdb.Close() //nolint:errcheck // every command was answered
	if n, err := rdb.DBSize(ctx).Result(); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("the database holds %d keys, and this wants an empty one", n))
	}
	entries, err := replay.Log()
	if err != nil {
		return err
	}
	d := &demo{rdb: rdb, out: out, commands: replay.Commands(entries)}
	return d.run(ctx)
}

// demo is one run.
type demo struct {
	rdb      redis.UniversalClient
	out      io.Writer
	commands []es.Command
}

func (d *demo) run(ctx context.Context) error {
	before, err := d.writeOld(ctx)
	if err != nil {
		return err
	}
	store := eventstore.New(d.rdb, wire.JSON(shop.Types()...))
	err = store.Ready(ctx, types...)
	if !errors.Is(err, es.ErrLegacyLayout) {
		return fmt.Errorf("the service must refuse to start, and says %w", err)
	}
	d.say("the service does not start: %v", err)
	if err := d.migrate(ctx); err != nil {
		return err
	}
	if err := store.Ready(ctx, types...); err != nil {
		return err
	}
	s := shop.New(store)
	after, err := s.Count(ctx, workers)
	if err != nil {
		return err
	}
	d.say("the service starts, and counts %d paid orders, %v together", after.OrdersPaid, after.PaidTotal)
	if after != before {
		return fmt.Errorf("the totals were %+v and are %+v", before, after)
	}
	tally, err := replay.Run(ctx, s.Handle, d.commands, workers, new(atomic.Int64))
	if err != nil {
		return err
	}
	d.say("the same commands again: %d carried out now, %d before the migration", tally.Applied, tally.Duplicates)
	if tally.Duplicates != len(d.commands) {
		return fmt.Errorf("%d of %d commands were carried out before", tally.Duplicates, len(d.commands))
	}
	return nil
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// writeOld has the commands carried out in memory, and stores what came of it as an old
// service would have. It returns the totals.
func (d *demo) writeOld(ctx context.Context) (shop.Totals, error) {
	store := memory.NewEventStore()
	s := shop.New(store)
	if _, err := replay.Run(ctx, s.Handle, d.commands, workers, new(atomic.Int64)); err != nil {
		return shop.Totals{}, err
	}
	codec, commits := wire.JSON(shop.Types()...), 0
	for _, t := range types {
		for id, err := range store.Scan(ctx, t, "") {
			if err != nil {
				return shop.Totals{}, err
			}
			n, err := d.put(ctx, store, codec, id)
			if err != nil {
				return shop.Totals{}, err
			}
			commits += n
		}
	}
	totals, err := s.Count(ctx, workers)
	d.say("an old service has stored %d commits: %d paid orders, %v together", commits, totals.OrdersPaid, totals.PaidTotal)
	return totals, err
}

func (d *demo) put(ctx context.Context, from es.Loader, codec es.Codec, id es.AggregateID) (int, error) {
	var members []redis.Z
	var requests []any
	for c, err := range from.Load(ctx, id, es.Versions{}) {
		if err != nil {
			return 0, err
		}
		text, err := codec.EncodeCommit(&c)
		if err != nil {
			return 0, err
		}
		members = append(members, redis.Z{Score: float64(c.Version), Member: string(text)})
		requests = append(requests, c.RequestID)
	}
	return len(members), fixture.Put(ctx, d.rdb, legacy.C, id, members, requests)
}

// migrate is the whole way.
func (d *demo) migrate(ctx context.Context) error {
	f, err := os.CreateTemp("", "manifest")
	if err != nil {
		return err
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	pace := migrate.Pace{Rate: 1_000_000} // nobody else wants this server
	report, err := migrate.Audit{Pace: pace, Types: types}.Run(ctx, d.rdb, f)
	if err != nil {
		return err
	}
	d.say("audit: exit code %d", report.Outcome())
	if err := report.Write(d.out); err != nil {
		return err
	}
	s := shop.New(eventstore.New(d.rdb, wire.JSON(shop.Types()...)))
	for _, step := range []struct {
		name string
		run  func() (migrate.Result, error)
	}{
		{"copy", func() (migrate.Result, error) { return migrate.Copy{Pace: pace}.Run(ctx, d.rdb, d.rdb, f) }},
		{"verify", func() (migrate.Result, error) {
			return migrate.Verify{Pace: pace, Replay: func(ctx context.Context, id es.AggregateID) error { return load(ctx, s, id) }}.Run(ctx, d.rdb, d.rdb, f)
		}},
		{"finish", func() (migrate.Result, error) {
			return migrate.Finish{Pace: pace, WritersStopped: true}.Run(ctx, d.rdb, d.rdb, f)
		}},
	} {
		result, err := step.run()
		if err != nil {
			return err
		}
		d.say("%s: exit code %d, %s keys", step.name, result.Outcome(), strconv.FormatInt(result.Keys, 10))
		if result.Outcome() != migrate.Clean {
			return fmt.Errorf("%s: %v", step.name, result.Problems.Problems)
		}
	}
	return nil
}

// load replays an aggregate by the service's own rules.
func load(ctx context.Context, s *shop.Shop, id es.AggregateID) error {
	var err error
	switch id.Type {
	case order.Type:
		_, err = s.Orders.Load(ctx, id)
	case item.Type:
		_, err = s.Items.Load(ctx, id)
	default:
		_, err = s.Packages.Load(ctx, id)
	}
	return err
}
