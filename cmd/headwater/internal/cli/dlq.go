package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

func (a *app) dlq() *cobra.Command {
	return group("dlq", "List, show, replay or discard dead letters",
		"A dead letter is a message that a group could not handle, with the reason. It is known\nby its topic and its id.",
		a.dlqList(), a.dlqShow(), a.dlqReplay(), a.dlqDiscard())
}

// filterFlags say which letters are meant.
func filterFlags(c *cobra.Command) func() recovery.LetterFilter {
	f := c.Flags()
	topics := f.StringSlice("topic", nil, "letters of this topic; may be repeated (default: all topics)")
	group := f.String("group", "", "letters of this group")
	reason := f.String("reason", "", "undecodable, unknown type, permanent, limit or crashed")
	aggregate := f.String("aggregate", "", "letters of this aggregate id")
	return func() recovery.LetterFilter {
		return recovery.LetterFilter{Topics: *topics, Group: *group, Reason: recovery.Reason(*reason), Aggregate: *aggregate}
	}
}

type letterView struct {
	Topic     string     `json:"topic"`
	ID        string     `json:"id"`
	Group     string     `json:"group"`
	Consumer  string     `json:"consumer"`
	Reason    string     `json:"reason"`
	Error     string     `json:"error"`
	Attempts  int        `json:"attempts"`
	Replays   int        `json:"replays"`
	First     string     `json:"first_failed"`
	Last      string     `json:"last_failed"`
	Stream    string     `json:"stream"`
	Entry     string     `json:"entry"`
	Origin    string     `json:"origin"`
	Aggregate string     `json:"aggregate,omitempty"`
	Fields    [][2]field `json:"fields,omitempty"`
}

// field is a name or a value of an entry: text, or what [output.Raw] makes of it.
type field = json.RawMessage

func viewLetter(l *recovery.Letter) letterView {
	return letterView{
		Topic: l.Topic, ID: l.ID, Group: l.Group, Consumer: l.Consumer, Reason: string(l.Reason), Error: l.Error, Attempts: l.Attempts,
		Replays: l.Replays, First: output.Time(l.First), Last: output.Time(l.Last), Stream: l.Stream, Entry: l.Entry, Origin: l.Origin, Aggregate: l.Aggregate,
	}
}

func (a *app) dlqList() *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List dead letters, the newest first",
		Example: "  headwater dlq list --topic order-service.order:event --reason limit",
		Args:    cobra.NoArgs,
	}
	filter := filterFlags(c)
	limit := c.Flags().Int("limit", 50, "how many letters to list")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *limit < 1 {
			return es.Invalid("--limit %d", *limit)
		}
		rdb, err := a.connect(c.Context())
		if err != nil {
			return err
		}
		letters, more := []letterView{}, false
		for l, err := range recovery.NewDeadLetters(rdb).List(c.Context(), filter(), recovery.Letter{}) {
			if err != nil {
				return err
			}
			if more = len(letters) == *limit; more {
				break
			}
			letters = append(letters, viewLetter(&l))
		}
		return a.show(map[string]any{"letters": letters, "more": more}, func(w io.Writer) {
			t := output.Table{Head: []string{"TOPIC", "ID", "GROUP", "REASON", "ATTEMPTS", "AGGREGATE", "ERROR"}, Right: map[int]bool{4: true}}
			for i := range letters {
				l := &letters[i]
				t.Add(l.Topic, l.ID, l.Group, l.Reason, l.Attempts, output.Or(l.Aggregate), output.Cut(l.Error, 60))
			}
			t.Write(w)
			if more {
				fmt.Fprintln(w, "there are more: --limit")
			}
		})
	}
	return c
}

func (a *app) dlqShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show TOPIC ID",
		Short:   "Show a dead letter with its message",
		Example: "  headwater dlq show order-service.order:event 1700000000000-0",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			rdb, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			l, err := recovery.NewDeadLetters(rdb).Get(c.Context(), args[0], args[1])
			damaged := errors.Is(err, es.ErrCorrupt)
			if err != nil && !damaged {
				return err
			}
			v := viewLetter(&l)
			for i := 0; i+1 < len(l.Fields); i += 2 {
				name, _ := json.Marshal(l.Fields[i]) // a string always can
				v.Fields = append(v.Fields, [2]field{name, output.Raw([]byte(l.Fields[i+1]))})
			}
			return a.show(v, func(w io.Writer) {
				output.Pairs(w, "topic", v.Topic, "id", v.ID, "group", v.Group, "consumer", output.Or(v.Consumer), "reason", v.Reason, "error", v.Error,
					"attempts", v.Attempts, "replays", v.Replays, "first failed", output.Or(v.First), "last failed", output.Or(v.Last),
					"read from", v.Stream, "entry", v.Entry, "origin", v.Origin, "aggregate", output.Or(v.Aggregate))
				for i := 0; i+1 < len(l.Fields); i += 2 {
					fmt.Fprintf(w, "%s:\n%s\n", output.Clean(l.Fields[i]), output.Indented([]byte(l.Fields[i+1]), ""))
				}
				if damaged {
					fmt.Fprintln(w, a.colour("31", "problem:"), output.Clean(err.Error()))
				}
			})
		},
	}
}

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
