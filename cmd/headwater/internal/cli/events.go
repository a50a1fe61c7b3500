package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// timeline is the knobs of the command events.
type timeline struct {
	from, to, limit int
	pretty, follow  bool
	interval        time.Duration
}

func (a *app) events() *cobra.Command {
	var o timeline
	c := &cobra.Command{
		Use:   "events AGGREGATE ID",
		Short: "Show the commits of an aggregate and their events",
		Long: `Show the commits of an aggregate in the order of their versions, each with its events.
Bodies are shown as they are stored. A commit that cannot be read, or that stands where
another one is due, is shown all the same, and the exit code is 1.

With --follow, wait for further commits and show them, until interrupted. With --json that
is one document a line, else one document.`,
		Example: "  headwater events order-service.order o-17\n  headwater events order-service.order o-17 --follow --json | jq .document",
		Args:    cobra.ExactArgs(2),
	}
	f := c.Flags()
	f.IntVar(&o.from, "from", 1, "the first version")
	f.IntVar(&o.to, "to", 0, "the last version (default: the newest)")
	f.IntVar(&o.limit, "limit", 100, "how many commits to show")
	f.BoolVar(&o.pretty, "pretty", false, "show bodies over several lines")
	f.BoolVar(&o.follow, "follow", false, "wait for further commits")
	f.DurationVar(&o.interval, "interval", 500*time.Millisecond, "how often --follow looks")
	tenant := tenantFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.from < 1 || o.to < 0 || o.limit < 1 || o.interval <= 0 {
			return es.Invalid("--from, --limit and --interval must be positive")
		}
		id, err := a.aggregate(c.Context(), args[0], args[1], *tenant)
		if err != nil {
			return err
		}
		if o.follow {
			return a.followEvents(c.Context(), id, o)
		}
		return a.listEvents(c.Context(), id, o)
	}
	return c
}

type commitView struct {
	Version  int64           `json:"version"`
	Document json.RawMessage `json:"document"`
	Problem  string          `json:"problem,omitempty"`
	commit   es.Commit
	stored   []byte
}

func (a *app) listEvents(ctx context.Context, id es.AggregateID, o timeline) error {
	commits, err := readCommits(ctx, a.rdb, id, o.from, o.to, o.limit+1)
	if err != nil {
		return err
	}
	if len(commits) == 0 && o.from == 1 {
		return &es.Error{Op: "events", Aggregate: id, Err: es.ErrNotFound}
	}
	next := int64(0)
	if len(commits) > o.limit {
		next = commits[o.limit].Version
		commits = commits[:o.limit]
	}
	document := map[string]any{"type": inspect.Format(id.Type), "id": id.ID, "tenant": id.Tenant, "commits": commits, "next": next}
	if err := a.show(document, func(w io.Writer) {
		for i := range commits {
			a.writeCommit(w, &commits[i], o.pretty)
		}
		if next > 0 {
			fmt.Fprintf(w, "more: --from %d\n", next)
		}
	}); err != nil {
		return err
	}
	for i := range commits {
		if commits[i].Problem != "" {
			a.note("version %d: %s", commits[i].Version, commits[i].Problem)
			return &failure{code: exitFailed}
		}
	}
	return nil
}

// followEvents looks again and again; the end of the context is how it ends.
func (a *app) followEvents(ctx context.Context, id es.AggregateID, o timeline) error {
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	for {
		commits, err := readCommits(ctx, a.rdb, id, o.from, o.to, o.limit)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range commits {
			c := &commits[i]
			if err := a.show(c, func(w io.Writer) { a.writeCommit(w, c, o.pretty) }); err != nil {
				return err
			}
			o.from = int(c.Version) + 1
		}
		if o.to > 0 && o.from > o.to {
			return nil
		}
		if len(commits) == o.limit {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// readCommits reads a page from a version on, whatever is the matter with it.
func readCommits(ctx context.Context, rdb redis.UniversalClient, id es.AggregateID, from, to, limit int) ([]commitView, error) {
	end := "+inf"
	if to > 0 {
		end = strconv.Itoa(to)
	}
	commits, due := []commitView{}, int64(from)
	for len(commits) < limit {
		page := int64(min(limit-len(commits), 100))
		members, err := redisrun.Do(ctx, 0, func() ([]redis.Z, error) {
			by := &redis.ZRangeBy{Min: strconv.FormatInt(due, 10), Max: end, Count: page}
			return rdb.ZRangeByScoreWithScores(ctx, rediskey.Stream(id), by).Result()
		})
		if err != nil {
			return nil, err
		}
		for _, z := range members {
			commits = append(commits, viewOf(id, z, due))
			due = int64(z.Score) + 1
		}
		if int64(len(members)) < page {
			break
		}
	}
	return commits, nil
}

func viewOf(id es.AggregateID, z redis.Z, due int64) commitView {
	text, _ := z.Member.(string)
	v := commitView{Version: int64(z.Score), stored: []byte(text)}
	c, err := decodeCommit(v.stored)
	switch {
	case err != nil:
		v.Problem = err.Error()
	case float64(c.Version) != z.Score:
		v.Problem = fmt.Sprintf("the commit says that its version is %d", c.Version)
	case c.Aggregate.ID != id.ID || c.Aggregate.Tenant != id.Tenant || c.Aggregate.Type.Name != id.Type.Name:
		v.Problem = "the commit is of " + c.Aggregate.String()
	case v.Version != due:
		v.Problem = fmt.Sprintf("it stands where version %d is due", due)
	}
	v.commit, v.Document = c, output.Raw(commitJSON(v.stored, &c))
	return v
}

func (a *app) writeCommit(w io.Writer, v *commitView, pretty bool) {
	c := &v.commit
	head := fmt.Sprintf("%-4s", "v"+strconv.FormatInt(v.Version, 10))
	fmt.Fprintf(w, "%s %s  commit %s  request %s  command %s\n", a.colour("1", head), output.Or(output.Time(c.CreateTime)),
		output.Or(output.Clean(c.ID)), output.Or(output.Clean(c.RequestID)), output.Or(output.Clean(c.CommandID)))
	if v.Problem != "" {
		fmt.Fprintf(w, "     %s %s\n     %s\n", a.colour("31", "problem:"), output.Clean(v.Problem), output.Compact(v.stored))
	}
	for _, e := range c.Events {
		body, _ := e.Body.(es.Raw) // no Go types are known
		text := output.Compact(body)
		if pretty {
			text = output.Indented(body, "     ")
		}
		fmt.Fprintf(w, "     %s  %s\n", output.Clean(e.Name), text)
	}
}
