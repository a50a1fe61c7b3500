package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/wire"
)

func (a *app) outbox() *cobra.Command {
	list := &cobra.Command{
		Use:   "list [AGGREGATE]",
		Short: "List the notes of commits that are not known to be published",
		Long: `List the notes of one aggregate type, or of all that topics name. A service publishes what
it has appended at once, and its relay what a crash left, within seconds; a note that
stays has nobody who cares for it.`,
		Example: "  headwater outbox list\n  headwater outbox list order-service.order",
		Args:    cobra.MaximumNArgs(1),
	}
	limit := list.Flags().Int("limit", 100, "how many notes to list")
	list.RunE = func(c *cobra.Command, args []string) error { return a.listNotes(c.Context(), args, *limit) }
	publish := &cobra.Command{
		Use:   "publish AGGREGATE [ID]",
		Short: "Publish what notes say is unpublished (writes)",
		Long: `Send the commits that notes stand for to the event stream of the type, as they are stored
and in the order of their versions, and move each note on after. A commit that was
published already arrives once more: readers are used to that.`,
		Example: "  headwater outbox publish order-service.order o-17 --yes",
		Args:    cobra.RangeArgs(1, 2),
	}
	tenant, yes := tenantFlag(publish), yesFlag(publish)
	publish.RunE = func(c *cobra.Command, args []string) error { return a.publishNotes(c.Context(), args, *tenant, *yes) }
	return group("outbox", "List notes of unpublished commits, or publish them", "", list, publish)
}

type noteView struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	From   int    `json:"from"`   // the first unpublished version
	Newest int64  `json:"newest"` // the newest version
	Since  string `json:"since"`  // when the first unpublished commit was made
	id     es.AggregateID
}

func (a *app) listNotes(ctx context.Context, args []string, limit int) error {
	rdb, err := a.connect(ctx)
	if err != nil {
		return err
	}
	types, err := typesOf(ctx, rdb, args)
	if err != nil {
		return err
	}
	notes, total := []noteView{}, int64(0)
	for _, t := range types {
		n, err := inspect.Notes(ctx, rdb, t)
		if err != nil {
			return err
		}
		total += n
		some, err := readNotes(ctx, rdb, t, limit-len(notes))
		if err != nil {
			return err
		}
		notes = append(notes, some...)
	}
	return a.show(map[string]any{"notes": notes, "total": total}, func(w io.Writer) {
		t := output.Table{Head: []string{"TYPE", "ID", "TENANT", "FROM", "NEWEST", "SINCE"}, Right: map[int]bool{3: true, 4: true}}
		for _, n := range notes {
			t.Add(n.Type, n.ID, n.Tenant, n.From, n.Newest, output.Or(n.Since))
		}
		t.Write(w)
		fmt.Fprintf(w, "%d of %s\n", len(notes), plural(total, "note"))
	})
}

// typesOf is the one type that is given, or all that topics name.
func typesOf(ctx context.Context, rdb redis.UniversalClient, args []string) ([]es.AggregateType, error) {
	if len(args) == 0 {
		return inspect.Types(ctx, rdb)
	}
	t, err := inspect.ParseType(args[0])
	return []es.AggregateType{t}, err
}

func readNotes(ctx context.Context, rdb redis.UniversalClient, t es.AggregateType, limit int) ([]noteView, error) {
	notes := []noteView{}
	for n, err := range eventstore.New(rdb, wire.JSON()).Unpublished(ctx, t) {
		if err != nil {
			return nil, err
		}
		if len(notes) >= limit {
			break
		}
		v, err := viewNote(ctx, rdb, n)
		if err != nil {
			return nil, err
		}
		notes = append(notes, v)
	}
	return notes, nil
}

func viewNote(ctx context.Context, rdb redis.UniversalClient, n es.Note) (noteView, error) {
	v := noteView{Type: inspect.Format(n.Aggregate.Type), ID: n.Aggregate.ID, Tenant: n.Aggregate.Tenant, From: n.Version, id: n.Aggregate}
	first, err := readCommits(ctx, rdb, n.Aggregate, n.Version, n.Version, 1)
	if err == nil && len(first) > 0 {
		v.Since = output.Time(first[0].commit.CreateTime)
	}
	if err == nil {
		var newest []redis.Z
		newest, err = redisrun.Do(ctx, 0, func() ([]redis.Z, error) {
			return rdb.ZRevRangeWithScores(ctx, rediskey.Stream(n.Aggregate), 0, 0).Result()
		})
		_, v.Newest = commitTime(newest)
	}
	return v, err
}

func (a *app) publishNotes(ctx context.Context, args []string, tenant string, yes bool) error {
	t, err := inspect.ParseType(args[0])
	if err != nil {
		return err
	}
	rdb, err := a.connect(ctx)
	if err != nil {
		return err
	}
	var notes []es.Note
	if len(args) == 2 {
		id, err := a.aggregate(ctx, args[0], args[1], tenant)
		if err != nil {
			return err
		}
		n, err := noteOf(ctx, rdb, id)
		if err != nil {
			return err
		}
		notes = append(notes, n)
	} else {
		for n, err := range eventstore.New(rdb, wire.JSON()).Unpublished(ctx, t) {
			if err != nil {
				return err
			}
			notes = append(notes, n)
		}
	}
	if len(notes) > 0 {
		n := plural(int64(len(notes)), "note")
		if err := a.confirm(ctx, yes, "publish to %s what %s of %s left unpublished", rediskey.Event(t), n, inspect.Format(t)); err != nil {
			return err
		}
	}
	sent, done, problems := a.publishAll(ctx, notes)
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("published %s of %s: %w", plural(sent, "commit"), plural(done, "aggregate"), err)
	}
	return a.show(map[string]any{"commits": sent, "aggregates": done}, func(w io.Writer) {
		fmt.Fprintf(w, "published %s of %s\n", plural(sent, "commit"), plural(done, "aggregate"))
	})
}

func noteOf(ctx context.Context, rdb redis.UniversalClient, id es.AggregateID) (es.Note, error) {
	key := rediskey.EventKeys(id)
	at, err := redisrun.Do(ctx, 0, func() (float64, error) { return rdb.ZScore(ctx, key.Outbox, key.Identity).Result() })
	if errors.Is(err, redis.Nil) {
		err = &es.Error{Op: "find note", Aggregate: id, Err: es.ErrNotFound}
	}
	return es.Note{Aggregate: id, Version: int(at)}, err
}

// publishAll goes on with the next aggregate where one is damaged.
func (a *app) publishAll(ctx context.Context, notes []es.Note) (sent, done int64, problems []error) {
	for _, n := range notes {
		commits, err := publishNote(ctx, a.rdb, n)
		sent += commits
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", n.Aggregate, err))
			if !errors.Is(err, es.ErrCorrupt) {
				return sent, done, problems
			}
			continue
		}
		done++
	}
	return sent, done, problems
}

// publishNote sends pages of commits until the note is gone, or stands where another
// publisher has moved it.
func publishNote(ctx context.Context, rdb redis.UniversalClient, n es.Note) (sent int64, err error) {
	const page = 32
	store := eventstore.New(rdb, wire.JSON())
	for from := n.Version; from > 0; {
		commits, err := readCommits(ctx, rdb, n.Aggregate, from, 0, page)
		if err != nil {
			return sent, err
		}
		if len(commits) == 0 {
			return sent, es.Corrupt("the note stands at version %d, which is not stored", from)
		}
		messages := make([][]byte, len(commits))
		for i := range commits {
			if commits[i].Problem != "" {
				return sent, es.Corrupt("version %s: %s", strconv.FormatInt(commits[i].Version, 10), commits[i].Problem)
			}
			messages[i] = commits[i].stored
		}
		if err := redisstream.Publish(ctx, rdb, rediskey.Event(n.Aggregate.Type), messages...); err != nil {
			return sent, err
		}
		sent += int64(len(commits))
		through := from + len(commits) - 1
		next, err := store.Published(ctx, n.Aggregate, from, through)
		if err != nil || next != through+1 {
			return sent, err
		}
		from = next
	}
	return sent, nil
}
