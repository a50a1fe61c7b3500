package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/migrate"
)

// migration is the flags that all steps have.
type migration struct {
	manifest   string
	rate       int
	parallel   int
	targetFlag string
	targetFile string
}

const migrateLong = `Bring a store of Wow's older layouts into the canonical one, in one maintenance window:

  1. stop everything that writes        4. headwater migrate verify  --manifest m
  2. headwater migrate audit --manifest m   5. headwater migrate finish  --manifest m
  3. headwater migrate copy  --manifest m   (or rollback, instead of finish)

There is no rolling upgrade between layouts. Each step may be cut at any moment and run
again: it goes on from there.

The source is the server that the other commands use. The target is the same server,
unless --target-redis, --target-redis-file or HEADWATER_TARGET_REDIS_URL names another one.

Exit codes: 0 clean, or done; 1 older keys are there and can be copied (audit); 2 a problem
needs somebody's decision, or nobody confirmed; 3 it could not finish; 130 interrupted.`

func (a *app) migrate() *cobra.Command {
	return group("migrate", "Migrate from older layouts: audit, copy, verify, finish, rollback", migrateLong,
		a.migrateAudit(), a.migrateCopy(), a.migrateVerify(), a.migrateFinish(), a.migrateRollback())
}

// step makes the command of one step.
func (a *app) step(use, short, long string, m *migration, run func(ctx context.Context) (migrate.Outcome, error)) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs, Example: "  headwater migrate " + use + " --manifest orders.manifest"}
	f := c.Flags()
	f.StringVar(&m.manifest, "manifest", "", "the manifest's file, which the audit writes and all later steps go by")
	f.IntVar(&m.rate, "rate", 0, "keys a second at most (default 5000)")
	f.IntVar(&m.parallel, "parallel", 0, "batches on their way at once (default 4)")
	if use != "audit" {
		f.StringVar(&m.targetFlag, "target-redis", "", "URL of another server to copy to, without a password")
		f.StringVar(&m.targetFile, "target-redis-file", "", "file whose first line is that URL")
	}
	if run != nil {
		a.onRun(c, run)
	}
	return c
}

// onRun gives a step's command its exit codes.
func (a *app) onRun(c *cobra.Command, run func(ctx context.Context) (migrate.Outcome, error)) {
	c.RunE = func(c *cobra.Command, _ []string) error {
		outcome, err := run(c.Context())
		var own *failure
		switch {
		case errors.As(err, &own):
			return err
		case err != nil && c.Context().Err() != nil:
			return &failure{exitInterrupted, err}
		case err != nil:
			return &failure{int(migrate.Unfinished), err}
		case outcome != migrate.Clean:
			return &failure{code: int(outcome)}
		}
		return nil
	}
}

func (a *app) pace(m *migration) migrate.Pace {
	p := migrate.Pace{Rate: m.rate, Parallel: m.parallel}
	if isTerminal(a.Err) {
		p.Progress = func(p migrate.Progress) { fmt.Fprint(a.Err, "\r\x1b[K"+bar(p)) }
	}
	return p
}

// ended ends the line of the progress bar.
func (a *app) ended() {
	if isTerminal(a.Err) {
		fmt.Fprint(a.Err, "\r\x1b[K")
	}
}

func (a *app) migrateAudit() *cobra.Command {
	var m migration
	var types, accept []string
	var names string
	var keysOnly bool
	c := a.step("audit", "Find all keys of older layouts, and what is wrong with them",
		`Find all keys of older layouts, on every master, and everything that would keep them from
being copied. It writes nothing to the server. The manifest is written where --manifest
names a file; one that was cut short is gone on with.`, &m, func(ctx context.Context) (migrate.Outcome, error) {
			audit := migrate.Audit{Pace: a.pace(&m), KeysOnly: keysOnly}
			for _, text := range types {
				t, err := inspect.ParseType(text)
				if err != nil {
					return migrate.Unfinished, err
				}
				audit.Types = append(audit.Types, t)
			}
			for _, code := range accept {
				audit.Accept = append(audit.Accept, migrate.Code(code))
			}
			if err := readNames(names, &audit); err != nil {
				return migrate.Unfinished, err
			}
			return a.audit(ctx, audit, m.manifest)
		})
	f := c.Flags()
	f.StringSliceVar(&types, "type", nil, "an aggregate type to migrate; may be repeated (default: all that are found)")
	f.StringSliceVar(&accept, "accept", nil, "code of a problem that shall not block; may be repeated")
	f.StringVar(&names, "names", "", "file that says which set each reservation belongs to: name, tab, key on each line")
	f.BoolVar(&keysOnly, "keys-only", false, "a first look, at names, types and cardinalities only")
	return c
}

func readNames(path string, audit *migrate.Audit) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return es.Invalid("%w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	audit.Names, err = migrate.ParseNames(f)
	return err
}

func (a *app) audit(ctx context.Context, audit migrate.Audit, path string) (migrate.Outcome, error) {
	rdb, err := a.connect(ctx)
	if err != nil {
		return migrate.Unfinished, err
	}
	var file migrate.File
	if path != "" && !audit.KeysOnly {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names it
		if err != nil {
			return migrate.Unfinished, err
		}
		defer f.Close() //nolint:errcheck // the audit has written and checked it
		file = f
	}
	report, err := audit.Run(ctx, rdb, file)
	a.ended()
	if err != nil {
		return migrate.Unfinished, err
	}
	a.note("%s", a.where)
	return report.Outcome(), a.show(report, func(w io.Writer) { _ = report.Write(w) })
}

// apply runs a step that goes by a manifest.
func (a *app) apply(ctx context.Context, m *migration,
	run func(source, target redis.UniversalClient, manifest io.ReadSeeker) (migrate.Result, error),
) (migrate.Outcome, error) {
	source, target, f, err := a.sides(ctx, m)
	if err != nil {
		return migrate.Unfinished, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	if target != source {
		defer target.Close() //nolint:errcheck // the step is over
	}
	result, err := run(source, target, f)
	a.ended()
	if err != nil {
		return migrate.Unfinished, err
	}
	return result.Outcome(), a.show(result, func(w io.Writer) { _ = result.Write(w) })
}

// sides are the two servers and the manifest.
func (a *app) sides(ctx context.Context, m *migration) (source, target redis.UniversalClient, f *os.File, err error) {
	if m.manifest == "" {
		return nil, nil, nil, es.Invalid("--manifest names no file")
	}
	if f, err = os.Open(m.manifest); err != nil {
		return nil, nil, nil, es.Invalid("%w", err)
	}
	if source, err = a.connect(ctx); err == nil {
		target, err = a.target(ctx, m, source)
	}
	if err != nil {
		_ = f.Close() // it was not read
	}
	return source, target, f, err
}

func (a *app) target(ctx context.Context, m *migration, source redis.UniversalClient) (redis.UniversalClient, error) {
	raw, err := a.Getenv("HEADWATER_TARGET_REDIS_URL"), error(nil)
	switch {
	case m.targetFlag != "":
		raw, err = fromFlag("--target-redis", m.targetFlag)
	case m.targetFile != "":
		raw, err = fromFile(m.targetFile)
	case raw == "":
		return source, nil
	}
	if err != nil {
		return nil, err
	}
	c, where, err := a.open(ctx, raw)
	if err == nil {
		a.where += " to " + where
	}
	return c, err
}
