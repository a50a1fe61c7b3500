package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
	Function  string     `json:"function,omitempty"`
	Fields    [][2]field `json:"fields,omitempty"`
}

// field is a name or a value of an entry: text, or what [output.Raw] makes of it.
type field = json.RawMessage

func viewLetter(l *recovery.Letter) letterView {
	return letterView{
		Topic: l.Topic, ID: l.ID, Group: l.Group, Consumer: l.Consumer, Reason: string(l.Reason), Error: l.Error, Attempts: l.Attempts,
		Replays: l.Replays, First: output.Time(l.First), Last: output.Time(l.Last), Stream: l.Stream, Entry: l.Entry, Origin: l.Origin, Aggregate: l.Aggregate,
		Function: l.Function.Name,
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
					"read from", v.Stream, "entry", v.Entry, "origin", v.Origin, "aggregate", output.Or(v.Aggregate), "function", output.Or(v.Function))
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
