package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/preparekey"
	"github.com/headwater-go/headwater/wire"
)

func (a *app) prepare() *cobra.Command {
	get := &cobra.Command{
		Use:     "get NAME KEY",
		Short:   "Show who holds a key",
		Example: "  headwater prepare get username ann",
		Args:    cobra.ExactArgs(2),
		RunE:    func(c *cobra.Command, args []string) error { return a.getKey(c.Context(), args[0], args[1]) },
	}
	rollback := &cobra.Command{
		Use:   "rollback NAME KEY",
		Short: "Free a key (writes)",
		Long: `Free a key, so that somebody else may reserve it. With --value it is freed only where it is
held with exactly that value.`,
		Example: "  headwater prepare rollback username ann --value '\"user-7\"' --yes",
		Args:    cobra.ExactArgs(2),
	}
	value, yes := rollback.Flags().String("value", "", "the value that must be stored, as it is stored"), yesFlag(rollback)
	rollback.RunE = func(c *cobra.Command, args []string) error {
		return a.rollbackKey(c.Context(), args[0], args[1], *value, *yes)
	}
	sweep := &cobra.Command{
		Use:   "sweep NAME",
		Short: "Remove reservations that ended over ten minutes ago (writes)",
		Long: `Remove the reservations of a name that ended over ten minutes ago, by the server's clock.
It walks through all keys of the database, twice, in small pages.`,
		Example: "  headwater prepare sweep username --yes",
		Args:    cobra.ExactArgs(1),
	}
	sweepYes := yesFlag(sweep)
	sweep.RunE = func(c *cobra.Command, args []string) error { return a.sweepKeys(c.Context(), args[0], *sweepYes) }
	return group("prepare", "Look at reservations of unique keys, free one, sweep ended ones", "", get, rollback, sweep)
}

type keyView struct {
	Name  string          `json:"name"`
	Key   string          `json:"key"`
	Held  bool            `json:"held"`
	Value json.RawMessage `json:"value"`
	Until string          `json:"until,omitempty"` // "" = until it is freed
	raw   es.Raw
}

func (a *app) keys(ctx context.Context, name string) (*preparekey.Keys[es.Raw], error) {
	rdb, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return preparekey.New[es.Raw](rdb, wire.JSON(), name), nil
}

func (a *app) readKey(ctx context.Context, name, key string) (*keyView, error) {
	keys, err := a.keys(ctx, name)
	if err != nil {
		return nil, err
	}
	p, err := keys.GetValue(ctx, key)
	if err != nil {
		return nil, err
	}
	v := &keyView{Name: name, Key: key, Value: output.Raw(p.Value), Until: output.Time(p.Until), raw: p.Value}
	now, err := a.rdb.Time(ctx).Result()
	v.Held = p.Until.IsZero() || p.Until.After(now)
	return v, err
}

func (v *keyView) state() string {
	switch {
	case !v.Held:
		return "ended at " + v.Until + ", not swept"
	case v.Until == "":
		return "held until it is freed"
	}
	return "held until " + v.Until
}

func (a *app) getKey(ctx context.Context, name, key string) error {
	v, err := a.readKey(ctx, name, key)
	if err != nil {
		return err
	}
	return a.show(v, func(w io.Writer) {
		output.Pairs(w, "name", name, "key", key, "state", v.state(), "value", string(v.raw))
	})
}

func (a *app) rollbackKey(ctx context.Context, name, key, value string, yes bool) error {
	v, err := a.readKey(ctx, name, key)
	if err != nil {
		return err
	}
	if err := a.confirm(ctx, yes, "free 1 key, %q of %q (%s, with %s)", key, name, v.state(), v.raw); err != nil {
		return err
	}
	keys, err := a.keys(ctx, name)
	if err != nil {
		return err
	}
	free := func() (bool, error) { return keys.Rollback(ctx, key) }
	if value != "" {
		free = func() (bool, error) { return keys.RollbackFrom(ctx, key, es.Raw(value)) }
	}
	freed, err := free()
	if err == nil && !freed {
		err = fmt.Errorf("key %q of %q: %w: it is not held, or with another value", key, name, es.ErrNotFound)
	}
	if err != nil {
		return err
	}
	return a.show(map[string]any{"freed": 1}, func(w io.Writer) { fmt.Fprintln(w, "freed 1 key") })
}

func (a *app) sweepKeys(ctx context.Context, name string, yes bool) error {
	keys, err := a.keys(ctx, name)
	if err != nil {
		return err
	}
	n, err := inspect.CountPrepared(ctx, a.rdb, rediskey.PreparePrefix(name), 0)
	if err != nil {
		return err
	}
	removed := 0
	if n.Ended > 0 {
		if err := a.confirm(ctx, yes, "remove %s of %q that ended, of %d", plural(n.Ended, "reservation"), name, n.All); err != nil {
			return err
		}
		if removed, err = keys.Sweep(ctx); err != nil {
			return err
		}
	}
	return a.show(map[string]any{"removed": removed, "reservations": n.All - int64(removed)}, func(w io.Writer) {
		fmt.Fprintf(w, "removed %s\n", plural(int64(removed), "reservation"))
	})
}
