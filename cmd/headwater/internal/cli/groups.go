package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
)

func (a *app) groups() *cobra.Command {
	var consumers bool
	c := &cobra.Command{
		Use:   "groups [TOPIC…]",
		Short: "List the groups: lag, pending, oldest, consumers and their leases",
		Long: `List the groups of the topics given, or of all that a subscription ever began on.

LAG      entries that no consumer has read; ? where Redis does not know
PENDING  entries that were read and not acknowledged
OLDEST   the age of the oldest of them
FAILING  entries that failed and are tried again
RETRY    entries of the group's retry stream, where replayed dead letters go
LIVE     consumers with a lease, of all

The state of a consumer's lease: held, passed (it is dead, or late), left (it ended),
kotlin (a Kotlin node's own lease), none.`,
		Example: "  headwater groups\n  headwater groups order-service.order:event --consumers",
	}
	c.Flags().BoolVar(&consumers, "consumers", false, "list each group's consumers too")
	c.RunE = func(c *cobra.Command, args []string) error { return a.listGroups(c.Context(), args, consumers) }
	return c
}

func (a *app) listGroups(ctx context.Context, given []string, consumers bool) error {
	topics, err := a.topics(ctx, given)
	if err != nil {
		return err
	}
	groups := []inspect.Group{}
	for _, topic := range topics {
		some, err := inspect.ReadGroups(ctx, a.rdb, topic)
		if err != nil {
			return err
		}
		groups = append(groups, some...)
	}
	return a.show(map[string]any{"groups": groups}, func(w io.Writer) {
		writeGroups(w, groups)
		if consumers {
			fmt.Fprintln(w)
			writeConsumers(w, groups)
		}
	})
}

func writeGroups(w io.Writer, groups []inspect.Group) {
	t := output.Table{
		Head:  []string{"TOPIC", "GROUP", "LAG", "PENDING", "OLDEST", "FAILING", "RETRY", "LIVE"},
		Right: map[int]bool{2: true, 3: true, 4: true, 5: true, 6: true, 7: true},
	}
	for i := range groups {
		g := &groups[i]
		t.Add(g.Topic, g.Name, lag(g.Unread), g.Pending, age(g.OldestMS), g.Failing, g.Retry, fmt.Sprintf("%d of %d", g.Live(), len(g.Consumers)))
	}
	t.Write(w)
}

func writeConsumers(w io.Writer, groups []inspect.Group) {
	t := output.Table{Head: []string{"GROUP", "CONSUMER", "PENDING", "IDLE", "LEASE"}, Right: map[int]bool{2: true, 3: true}}
	for i := range groups {
		for _, c := range groups[i].Consumers {
			lease := c.Lease
			if c.LeaseMS > 0 {
				lease += " for " + age(c.LeaseMS)
			} else if c.LeaseMS < 0 {
				lease += " " + age(-c.LeaseMS) + " ago"
			}
			t.Add(groups[i].Name, c.Name, c.Pending, age(c.IdleMS), lease)
		}
	}
	t.Write(w)
}

func lag(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func age(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return output.Age(time.Duration(ms) * time.Millisecond)
}
