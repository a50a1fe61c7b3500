package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/doctor"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
)

// The exit codes of doctor.
const (
	exitWarnings = 1
	exitErrors   = 2
	exitUnknown  = 3
)

func (a *app) doctor() *cobra.Command {
	var o doctor.Options
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and explain it",
		Long: `Look at the servers' settings and state, the streams, groups, dead letters, notes,
reservations, indexes, keys of older layouts, and the rights of the connected user. Each
finding has a code; "headwater doctor explain CODE" says what it means and what to do.

It reads only, unless --fix is given, which does only what is safe and tells it: it sets
maxmemory-policy noeviction and tcp-keepalive on running servers, removes consumers that
are gone and hold nothing, and sweeps reservations that ended.

Without --full it looks at some of the keys and aggregates; with it, at all.

Exit codes: 0 nothing but notes, 1 warnings, 2 errors, 3 something could not be looked at.`,
		Example: "  headwater doctor\n  headwater doctor --full --json\n  headwater doctor explain HW024",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := a.examine(c.Context(), o)
			if a.rdb == nil && err != nil && a.code(c.Context(), err) == exitFailed {
				return &failure{exitUnknown, err}
			}
			return err
		},
	}
	c.Flags().BoolVar(&o.Full, "full", false, "look at every key and every aggregate")
	c.Flags().BoolVar(&o.Fix, "fix", false, "do what is safe (writes)")
	c.AddCommand(&cobra.Command{
		Use:     "explain [CODE]",
		Short:   "Explain a finding, or list all codes",
		Example: "  headwater doctor explain HW001",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.show(map[string]any{"pages": doctor.Pages()}, func(w io.Writer) {
					for _, p := range doctor.Pages() {
						fmt.Fprintln(w, p.Code, p.Title)
					}
				})
			}
			for _, p := range doctor.Pages() {
				if p.Code == args[0] {
					return a.show(p, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n\n%s\n\nWhat to do: %s\n", p.Code, p.Title, p.Why, p.Mend) })
				}
			}
			return fmt.Errorf("%w: code %q", es.ErrNotFound, args[0])
		},
	})
	return c
}

func (a *app) examine(ctx context.Context, o doctor.Options) error {
	rdb, err := a.connect(ctx)
	if err != nil {
		return err
	}
	findings, err := doctor.Look(ctx, rdb, o)
	if err != nil {
		return err
	}
	if findings == nil {
		findings = []doctor.Finding{}
	}
	if err := a.show(map[string]any{"server": a.where, "full": o.Full, "findings": findings}, func(w io.Writer) { a.writeFindings(w, findings) }); err != nil {
		return err
	}
	worst := exitDone
	for _, f := range findings {
		switch f.Level {
		case doctor.Error:
			return &failure{code: exitErrors}
		case doctor.Unknown:
			worst = exitUnknown
		case doctor.Warning:
			worst = max(worst, exitWarnings)
		case doctor.Note:
		}
	}
	if worst != exitDone {
		return &failure{code: worst}
	}
	return nil
}

func (a *app) writeFindings(w io.Writer, findings []doctor.Finding) {
	colours := map[doctor.Level]string{doctor.Error: "31", doctor.Unknown: "35", doctor.Warning: "33", doctor.Note: "36"}
	for _, f := range findings {
		where := ""
		if f.Where != "" {
			where = output.Clean(f.Where) + ": "
		}
		fmt.Fprintf(w, "%s %s  %s%s\n", a.colour(colours[f.Level], fmt.Sprintf("%-7s", f.Level)), f.Code, where, output.Clean(f.Text))
		if f.Fixed != "" {
			fmt.Fprintf(w, "               %s\n", output.Clean(f.Fixed))
		}
	}
	if len(findings) == 0 {
		fmt.Fprintln(w, "nothing is wrong")
		return
	}
	fmt.Fprintln(w, "headwater doctor explain CODE says what to do.")
}
