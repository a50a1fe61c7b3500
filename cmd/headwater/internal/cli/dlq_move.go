package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

func (a *app) dlqReplay() *cobra.Command {
	c := &cobra.Command{
		Use:   "replay [TOPIC ID…]",
		Short: "Give dead letters to their groups once more (writes)",
		Long: `Move dead letters to the retry streams of their groups, which no other group reads: the
letters given, or those that the filter means, or --all. Each is moved in one step, so that
whatever happens, every message is either a dead letter still or in the retry stream.

Letters that are written after it began are not replayed. After an interruption (exit code
130, with the counts) the same command goes on.`,
		Example: "  headwater dlq replay order-service.order:event 1700000000000-0\n  headwater dlq replay --group order-service.Projection --rate 100 --yes",
	}
	filter, yes := filterFlags(c), yesFlag(c)
	all := c.Flags().Bool("all", false, "replay every letter")
	rate := c.Flags().Float64("rate", 0, "letters a second at most (0 = no limit)")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.overLetters(c.Context(), args, filter(), *all, *yes, "replay",
			func(ctx context.Context, d *recovery.DeadLetters, t *tally) error {
				return replayLetters(ctx, d, args, filter(), *rate, t)
			})
	}
	return c
}

func (a *app) dlqDiscard() *cobra.Command {
	c := &cobra.Command{
		Use:     "discard [TOPIC ID…]",
		Short:   "Remove dead letters for good (writes)",
		Long:    "Remove dead letters for good: the letters given, or those that the filter means, or --all.\nTheir messages are lost to their groups.",
		Example: "  headwater dlq discard order-service.order:event 1700000000000-0\n  headwater dlq discard --reason undecodable --yes",
	}
	filter, all, yes := filterFlags(c), c.Flags().Bool("all", false, "discard every letter"), yesFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.overLetters(c.Context(), args, filter(), *all, *yes, "discard",
			func(ctx context.Context, d *recovery.DeadLetters, t *tally) error {
				return discardLetters(ctx, d, args, filter(), t)
			})
	}
	return c
}

// tally counts what became of letters.
type tally struct {
	Done int64 `json:"done"`
	// Gone were replayed or discarded by somebody else, and Groupless stay, since their
	// group exists no more.
	Gone      int64 `json:"gone"`
	Groupless int64 `json:"groupless"`
	Remaining int64 `json:"remaining"`
}

// overLetters asks, does it, and tells the counts, also where it was cut short.
func (a *app) overLetters(ctx context.Context, args []string, f recovery.LetterFilter, all, yes bool, verb string,
	do func(context.Context, *recovery.DeadLetters, *tally) error,
) error {
	if err := checkChoice(args, f, all); err != nil {
		return err
	}
	rdb, err := a.connect(ctx)
	if err != nil {
		return err
	}
	d := recovery.NewDeadLetters(rdb)
	n, which := int64(len(args)-1), "of "+strings.Join(args[:min(1, len(args))], "")
	if len(args) == 0 {
		if n, err = d.Count(ctx, f); err != nil {
			return err
		}
		which = "of " + describe(f)
	}
	if n > 0 {
		if err := a.confirm(ctx, yes, "%s %s %s", verb, plural(n, "dead letter"), which); err != nil {
			return err
		}
	}
	var t tally
	failed := do(ctx, d, &t)
	if len(args) == 0 {
		t.Remaining, err = d.Count(context.WithoutCancel(ctx), f)
	}
	past := map[string]string{"replay": "replayed", "discard": "discarded"}[verb]
	if failed == nil && err == nil {
		if err = a.show(t, func(w io.Writer) { fmt.Fprintln(w, t.line(past)) }); err == nil && len(args) > 0 && t.Done < n {
			return &failure{exitNotFound, nil}
		}
		return err
	}
	return errors.Join(fmt.Errorf("%s: %w", t.line(past), failed), err)
}

// checkChoice wants exactly one of the ways to say which letters are meant.
func checkChoice(args []string, f recovery.LetterFilter, all bool) error {
	filtered := len(f.Topics) > 0 || f.Group != "" || f.Reason != "" || f.Aggregate != ""
	switch {
	case len(args) == 1:
		return es.Invalid("a letter is known by its topic and its id")
	case len(args) > 0 && (filtered || all), filtered && all, len(args) == 0 && !filtered && !all:
		return es.Invalid("say which letters: TOPIC and ID, or a filter, or --all")
	}
	return nil
}

func (t *tally) line(past string) string {
	line := fmt.Sprintf("%s %s", past, plural(t.Done, "dead letter"))
	if t.Gone > 0 {
		line += fmt.Sprintf(", %d not there (any more)", t.Gone)
	}
	if t.Groupless > 0 {
		line += fmt.Sprintf(", %d kept, since their group exists no more", t.Groupless)
	}
	return fmt.Sprintf("%s, %d left", line, t.Remaining)
}

func describe(f recovery.LetterFilter) string {
	parts := []string{}
	for _, p := range [][2]string{{"topic", strings.Join(f.Topics, ", ")}, {"group", f.Group}, {"reason", string(f.Reason)}, {"aggregate", f.Aggregate}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	if len(parts) == 0 {
		return "all topics"
	}
	return strings.Join(parts, ", ")
}

func replayLetters(ctx context.Context, d *recovery.DeadLetters, args []string, f recovery.LetterFilter, rate float64, t *tally) error {
	for _, id := range args[min(1, len(args)):] {
		_, err := d.Replay(ctx, args[0], id)
		if !errors.Is(err, es.ErrNotFound) && err != nil {
			return err
		}
		t.add(err)
	}
	if len(args) > 0 {
		return nil
	}
	for r, err := range d.ReplayMany(ctx, f, rate) {
		if err != nil {
			return err
		}
		t.add(r.Err)
	}
	return nil
}

func (t *tally) add(err error) {
	switch {
	case err == nil:
		t.Done++
	case errors.Is(err, recovery.ErrNoGroup):
		t.Groupless++
	default:
		t.Gone++
	}
}

func discardLetters(ctx context.Context, d *recovery.DeadLetters, args []string, f recovery.LetterFilter, t *tally) error {
	if len(args) > 0 {
		n, err := d.Discard(ctx, args[0], args[1:]...)
		t.Done, t.Gone = n, int64(len(args)-1)-n
		return err
	}
	for l, err := range d.List(ctx, f, recovery.Letter{}) {
		if err != nil {
			return err
		}
		n, err := d.Discard(ctx, l.Topic, l.ID)
		if err != nil {
			return err
		}
		t.Done, t.Gone = t.Done+n, t.Gone+1-n
	}
	return nil
}
