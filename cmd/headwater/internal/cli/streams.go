package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/recovery"
)

func (a *app) streams() *cobra.Command {
	return &cobra.Command{
		Use:   "streams [TOPIC…]",
		Short: "List the topics' streams: lengths, sizes, groups, dead letters",
		Long: `List the streams of the topics given, or of all that a subscription ever began on. ADDED
counts what was ever published, where the server counts it (Redis 7).`,
		Example: "  headwater streams\n  headwater streams order-service.order:event",
		RunE: func(c *cobra.Command, args []string) error {
			return a.listStreams(c.Context(), args)
		},
	}
}

// topics connects, and is the topics given or all there are.
func (a *app) topics(ctx context.Context, given []string) ([]string, error) {
	rdb, err := a.connect(ctx)
	if err != nil || len(given) > 0 {
		return given, err
	}
	all, err := recovery.Topics(ctx, rdb)
	if err == nil && len(all) == 0 {
		a.note("%s: no subscription ever began here; topics may be given by name", a.where)
	}
	return all, err
}

func (a *app) listStreams(ctx context.Context, given []string) error {
	topics, err := a.topics(ctx, given)
	if err != nil {
		return err
	}
	streams := []inspect.Stream{}
	for _, topic := range topics {
		s, err := inspect.ReadStream(ctx, a.rdb, topic)
		if err != nil {
			return err
		}
		streams = append(streams, s)
	}
	return a.show(map[string]any{"streams": streams}, func(w io.Writer) {
		t := output.Table{
			Head:  []string{"TOPIC", "LENGTH", "ADDED", "SIZE", "GROUPS", "DEAD", "FIRST", "LAST"},
			Right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true},
		}
		for _, s := range streams {
			t.Add(s.Topic, s.Length, count(s.Added), size(s.Bytes), s.Groups, s.DeadLetters, entryTime(s.First), entryTime(s.Last))
		}
		t.Write(w)
	})
}

// count is a number, or a dash for none.
func count(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func entryTime(id string) string { return output.Or(output.Time(inspect.EntryTime(id))) }
