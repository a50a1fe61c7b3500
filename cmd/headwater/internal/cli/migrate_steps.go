package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/migrate"
)

func (a *app) migrateCopy() *cobra.Command {
	var m migration
	var dry bool
	c := a.step("copy", "Write the canonical keys that a manifest lists (writes)",
		`Write the canonical keys that a manifest lists. It removes nothing and overwrites nothing;
what was copied before is compared and counted. --dry-run compares and writes nothing.`, &m, func(ctx context.Context) (migrate.Outcome, error) {
			return a.apply(ctx, &m, func(source, target redis.UniversalClient, f io.ReadSeeker) (migrate.Result, error) {
				return migrate.Copy{Pace: a.pace(&m), DryRun: dry}.Run(ctx, source, target, f)
			})
		})
	c.Flags().BoolVar(&dry, "dry-run", false, "read and compare, and write nothing")
	return c
}

func (a *app) migrateVerify() *cobra.Command {
	var m migration
	return a.step("verify", "Compare both sides with the manifest, byte by byte",
		`Compare both sides with the manifest: checksums of commits and versions, request sets,
indexes, snapshots and reservations; and look for keys that the manifest does not list. That
it passed is noted in the target, for finish. To replay aggregates through a service's own
decider as well, use package migrate from Go.`, &m, func(ctx context.Context) (migrate.Outcome, error) {
			return a.apply(ctx, &m, func(source, target redis.UniversalClient, f io.ReadSeeker) (migrate.Result, error) {
				return migrate.Verify{Pace: a.pace(&m)}.Run(ctx, source, target, f)
			})
		})
}

func (a *app) migrateFinish() *cobra.Command {
	var m migration
	var stopped bool
	var old string
	c := a.step("finish", "Remove the old keys that a manifest lists (writes)",
		`Remove the old keys that a manifest lists, and nothing else, once verify has passed for it.
From its first removal on there is no rollback.

Old writers must be stopped: prove it with --old-writers-file, a file with the URL of the
old service's user, whose right to write was withdrawn; or say it with --writers-stopped.`, &m, nil)
	yes := yesFlag(c)
	c.Flags().BoolVar(&stopped, "writers-stopped", false, "no old writer runs")
	c.Flags().StringVar(&old, "old-writers-file", "", "file with the URL by which the old service connected")
	a.onRun(c, func(ctx context.Context) (migrate.Outcome, error) {
		finish := migrate.Finish{Pace: a.pace(&m), WritersStopped: stopped}
		if old != "" {
			raw, err := fromFile(old)
			if err != nil {
				return migrate.Unfinished, err
			}
			writers, _, err := a.open(ctx, raw)
			if err != nil {
				return migrate.Unfinished, err
			}
			defer writers.Close() //nolint:errcheck // the step is over
			finish.OldWriters = writers
		}
		return a.apply(ctx, &m, func(source, target redis.UniversalClient, f io.ReadSeeker) (migrate.Result, error) {
			if err := a.confirmManifest(ctx, *yes, f, "remove for good the"); err != nil {
				return migrate.Result{}, err
			}
			return finish.Run(ctx, source, target, f)
		})
	})
	return c
}

func (a *app) migrateRollback() *cobra.Command {
	var m migration
	c := a.step("rollback", "Remove the canonical keys that a copy wrote (writes)",
		`Remove the canonical keys that a copy wrote, where nobody has changed them since and their
source is as it was audited. Once finish has begun it is refused.`, &m, nil)
	yes := yesFlag(c)
	a.onRun(c, func(ctx context.Context) (migrate.Outcome, error) {
		return a.apply(ctx, &m, func(source, target redis.UniversalClient, f io.ReadSeeker) (migrate.Result, error) {
			if err := a.confirmManifest(ctx, *yes, f, "take back the copy of"); err != nil {
				return migrate.Result{}, err
			}
			return migrate.Rollback{Pace: a.pace(&m)}.Run(ctx, source, target, f)
		})
	})
	return c
}

// confirmManifest asks with the counts of the manifest.
func (a *app) confirmManifest(ctx context.Context, yes bool, f io.ReadSeeker, what string) error {
	report, err := migrate.ReadReport(f)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return a.confirm(ctx, yes, "%s %s of manifest %s", what, plural(report.Legacy(), "key"), report.Manifest)
}

// bar is one line of progress.
func bar(p migrate.Progress) string {
	const width = 30
	full := 0
	if p.Of > 0 {
		full = int(min(p.Keys, p.Of) * width / p.Of)
	}
	line := fmt.Sprintf("%-8s [%s%s] %d of %d keys, %s", p.Step, strings.Repeat("#", full), strings.Repeat(".", width-full), p.Keys, p.Of, output.Bytes(p.Bytes))
	if left := p.Left(); left > 0 {
		line += ", " + output.Age(left.Round(time.Second)) + " left"
	}
	return line
}
