package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/wire"
)

func (a *app) aggregates() *cobra.Command {
	var scan bool
	var limit int
	var after string
	list := &cobra.Command{
		Use:   "list [AGGREGATE]",
		Short: "List the aggregate types, or the aggregates of one",
		Long: `Without AGGREGATE, list the aggregate types of all topics that a subscription ever
began on. --scan finds those too that no bus carries; it walks through all keys, in small pages.

With AGGREGATE, such as order-service.order, list its aggregates in the order of their ids.`,
		Example: "  headwater aggregates list\n  headwater aggregates list order-service.order --limit 20 --after o-17",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listTypes(c.Context(), scan)
			}
			return a.listAggregates(c.Context(), args[0], after, limit)
		},
	}
	list.Flags().BoolVar(&scan, "scan", false, "look through all keys for types that no topic names")
	list.Flags().IntVar(&limit, "limit", 100, "how many aggregates to list")
	list.Flags().StringVar(&after, "after", "", "begin after this id")
	show := &cobra.Command{
		Use:     "show AGGREGATE ID",
		Short:   "Show one aggregate: versions, sizes, snapshot, what is unpublished",
		Example: "  headwater aggregates show order-service.order o-17",
		Args:    cobra.ExactArgs(2),
	}
	tenant := tenantFlag(show)
	show.RunE = func(c *cobra.Command, args []string) error {
		id, err := a.aggregate(c.Context(), args[0], args[1], *tenant)
		if err != nil {
			return err
		}
		return a.showAggregate(c.Context(), id)
	}
	return group("aggregates", "List aggregates, or show one", "", list, show)
}

func tenantFlag(c *cobra.Command) *string {
	return c.Flags().String("tenant", "", "the aggregate's tenant (default: whichever holds the id)")
}

// aggregate connects and finds the aggregate that the operator names.
func (a *app) aggregate(ctx context.Context, typ, id, tenant string) (es.AggregateID, error) {
	t, err := inspect.ParseType(typ)
	if err != nil {
		return es.AggregateID{}, err
	}
	if err := t.ID(id).Validate(); err != nil {
		return es.AggregateID{}, err
	}
	rdb, err := a.connect(ctx)
	if err != nil {
		return es.AggregateID{}, err
	}
	if tenant != "" {
		return t.ID(id).InTenant(tenant), nil
	}
	return inspect.Find(ctx, rdb, t.ID(id))
}

type typeRow struct {
	Type        string `json:"type"`
	Aggregates  int64  `json:"aggregates"`
	Unpublished int64  `json:"unpublished"`
}

func (a *app) listTypes(ctx context.Context, scan bool) error {
	rdb, err := a.connect(ctx)
	if err != nil {
		return err
	}
	find := inspect.Types
	if scan {
		find = inspect.ScanTypes
	}
	types, err := find(ctx, rdb)
	if err != nil {
		return err
	}
	rows := make([]typeRow, 0, len(types))
	for _, t := range types {
		r := typeRow{Type: inspect.Format(t)}
		if r.Aggregates, err = inspect.Count(ctx, rdb, t); err != nil {
			return err
		}
		if r.Unpublished, err = inspect.Notes(ctx, rdb, t); err != nil {
			return err
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 && !scan {
		a.note("%s: no subscription ever began here; --scan looks through all keys", a.where)
	}
	return a.show(map[string]any{"types": rows}, func(w io.Writer) {
		t := output.Table{Head: []string{"TYPE", "AGGREGATES", "UNPUBLISHED"}, Right: map[int]bool{1: true, 2: true}}
		for _, r := range rows {
			t.Add(r.Type, r.Aggregates, r.Unpublished)
		}
		t.Write(w)
	})
}

type aggregateRow struct {
	ID            string `json:"id"`
	Tenant        string `json:"tenant"`
	Version       int64  `json:"version"`
	Bytes         int64  `json:"bytes"`
	SnapshotBytes int64  `json:"snapshot_bytes"`
	Unpublished   int64  `json:"unpublished_from"` // 0 = all is published
}

func (a *app) listAggregates(ctx context.Context, typ, after string, limit int) error {
	t, err := inspect.ParseType(typ)
	if err != nil {
		return err
	}
	if limit < 1 {
		return es.Invalid("--limit %d", limit)
	}
	rdb, err := a.connect(ctx)
	if err != nil {
		return err
	}
	total, err := inspect.Count(ctx, rdb, t)
	if err != nil {
		return err
	}
	var ids []es.AggregateID
	next := ""
	for id, err := range eventstore.New(rdb, wire.JSON()).Scan(ctx, t, after) {
		if err != nil {
			return err
		}
		if len(ids) == limit {
			next = ids[limit-1].ID
			break
		}
		ids = append(ids, id)
	}
	rows := []aggregateRow{}
	for page := range pages(ids, 100) {
		some, err := rowsOf(ctx, rdb, page)
		if err != nil {
			return err
		}
		rows = append(rows, some...)
	}
	return a.show(map[string]any{"type": inspect.Format(t), "total": total, "aggregates": rows, "next": next}, func(w io.Writer) {
		writeAggregates(w, rows, total, next)
	})
}

func writeAggregates(w io.Writer, rows []aggregateRow, total int64, next string) {
	t := output.Table{Head: []string{"ID", "TENANT", "VERSION", "SIZE", "SNAPSHOT", "UNPUBLISHED"}, Right: map[int]bool{2: true, 3: true, 4: true}}
	for _, r := range rows {
		unpublished := "-"
		if r.Unpublished > 0 {
			unpublished = fmt.Sprintf("from %d", r.Unpublished)
		}
		t.Add(r.ID, r.Tenant, r.Version, size(r.Bytes), size(r.SnapshotBytes), unpublished)
	}
	t.Write(w)
	fmt.Fprintf(w, "%d of %s\n", len(rows), plural(total, "aggregate"))
	if next != "" {
		fmt.Fprintf(w, "more: --after %s\n", output.Clean(next))
	}
}

func size(n int64) string {
	if n == 0 {
		return "-"
	}
	return output.Bytes(n)
}

func rowsOf(ctx context.Context, rdb redis.UniversalClient, ids []es.AggregateID) ([]aggregateRow, error) {
	rows := make([]aggregateRow, len(ids))
	cards, sizes, snapshots := make([]*redis.IntCmd, len(ids)), make([]*redis.IntCmd, len(ids)), make([]*redis.IntCmd, len(ids))
	notes := make([]*redis.FloatCmd, len(ids))
	_, err := redisrun.Do(ctx, 0, func() ([]redis.Cmder, error) {
		return rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range ids {
				key := rediskey.EventKeys(id)
				cards[i], sizes[i] = p.ZCard(ctx, key.Stream), p.MemoryUsage(ctx, key.Stream)
				snapshots[i], notes[i] = p.StrLen(ctx, rediskey.Snapshot(id)), p.ZScore(ctx, key.Outbox, key.Identity)
			}
			return nil
		})
	})
	for i, id := range ids {
		if e := cards[i].Err(); e != nil { // of the others absent, and not allowed, are no trouble
			return nil, err
		}
		rows[i] = aggregateRow{id.ID, id.Tenant, cards[i].Val(), sizes[i].Val(), snapshots[i].Val(), int64(notes[i].Val())}
	}
	return rows, nil
}

// pages yields parts of items.
func pages[T any](items []T, size int) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(items) > 0 {
			n := min(size, len(items))
			if !yield(items[:n]) {
				return
			}
			items = items[n:]
		}
	}
}
