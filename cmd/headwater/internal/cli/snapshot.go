package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

func (a *app) snapshots() *cobra.Command {
	show := &cobra.Command{
		Use:     "show AGGREGATE ID",
		Short:   "Show the newest snapshot of an aggregate",
		Example: "  headwater snapshot show order-service.order o-17",
		Args:    cobra.ExactArgs(2),
	}
	showTenant := tenantFlag(show)
	show.RunE = func(c *cobra.Command, args []string) error {
		id, err := a.aggregate(c.Context(), args[0], args[1], *showTenant)
		if err != nil {
			return err
		}
		return a.showSnapshot(c.Context(), id)
	}
	drop := &cobra.Command{
		Use:   "drop AGGREGATE ID",
		Short: "Remove the snapshot of an aggregate (writes)",
		Long: `Remove the snapshot of an aggregate. Nothing is lost: the next command replays the
events, and saves a new one when its strategy says so.`,
		Example: "  headwater snapshot drop order-service.order o-17 --yes",
		Args:    cobra.ExactArgs(2),
	}
	dropTenant, yes := tenantFlag(drop), yesFlag(drop)
	drop.RunE = func(c *cobra.Command, args []string) error {
		id, err := a.aggregate(c.Context(), args[0], args[1], *dropTenant)
		if err != nil {
			return err
		}
		return a.dropSnapshot(c.Context(), id, *yes)
	}
	return group("snapshot", "Show a snapshot, or drop it", "", show, drop)
}

type snapshotView struct {
	Version int             `json:"version"`
	Bytes   int             `json:"bytes"`
	Time    string          `json:"time,omitempty"`
	EventID string          `json:"event_id,omitempty"`
	Schema  string          `json:"schema,omitempty"`
	Deleted bool            `json:"deleted,omitempty"`
	Problem string          `json:"problem,omitempty"`
	Stored  json.RawMessage `json:"stored,omitempty"`
	raw     []byte
}

func (v *snapshotView) line() string {
	if v.Problem != "" {
		return fmt.Sprintf("unreadable, %s", output.Bytes(int64(v.Bytes)))
	}
	return fmt.Sprintf("version %d, %s, made %s", v.Version, output.Bytes(int64(v.Bytes)), v.Time)
}

// readSnapshot is nil where there is none.
func readSnapshot(ctx context.Context, rdb redis.UniversalClient, id es.AggregateID) (*snapshotView, error) {
	data, err := redisrun.Do(ctx, 0, func() ([]byte, error) { return rdb.Get(ctx, rediskey.Snapshot(id)).Bytes() })
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil //nolint:nilnil // there is none, and that is no error
	case errors.Is(err, es.ErrCorrupt):
		return &snapshotView{Problem: err.Error()}, nil
	case err != nil:
		return nil, err
	}
	v := &snapshotView{Bytes: len(data), raw: data}
	m, problem := snapshotMeta(id.Type, data)
	if problem != nil {
		v.Problem = problem.Error()
	}
	v.Version, v.Time, v.EventID, v.Schema, v.Deleted = m.Version, output.Time(m.SnapshotTime), m.EventID, m.Schema, m.Deleted
	return v, nil
}

func (a *app) showSnapshot(ctx context.Context, id es.AggregateID) error {
	v, err := readSnapshot(ctx, a.rdb, id)
	if err == nil && v == nil {
		err = &es.Error{Op: "show snapshot", Aggregate: id, Err: es.ErrNotFound}
	}
	if err != nil {
		return err
	}
	v.Stored = output.Raw(v.raw)
	return a.show(v, func(w io.Writer) {
		if v.Problem != "" {
			output.Pairs(w, "problem", v.Problem, "size", output.Bytes(int64(v.Bytes)))
		} else {
			output.Pairs(w, "version", v.Version, "size", output.Bytes(int64(v.Bytes)), "made", v.Time, "last event", v.EventID,
				"schema", output.Or(v.Schema), "deleted", v.Deleted)
		}
		fmt.Fprintln(w, output.Indented(v.raw, ""))
	})
}

func (a *app) dropSnapshot(ctx context.Context, id es.AggregateID, yes bool) error {
	v, err := readSnapshot(ctx, a.rdb, id)
	if err == nil && v == nil {
		err = &es.Error{Op: "drop snapshot", Aggregate: id, Err: es.ErrNotFound}
	}
	if err != nil {
		return err
	}
	if err := a.confirm(ctx, yes, "remove 1 snapshot, of %s (%s)", id, v.line()); err != nil {
		return err
	}
	if err := snapshot.New[es.Raw](a.rdb, wire.JSON()).Drop(ctx, id); err != nil {
		return err
	}
	return a.show(map[string]any{"dropped": 1}, func(w io.Writer) { fmt.Fprintln(w, "dropped 1 snapshot") })
}
