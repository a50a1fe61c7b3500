package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

func (a *app) top() *cobra.Command {
	var once bool
	var interval time.Duration
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch servers, streams and groups: rates, lag, pending, dead letters, memory",
		Long: `Show what happens, anew every interval, in place where standard output is a terminal.
Rates are what changed between two looks; IN is what was published to a stream each second
(Redis 7), and OUT what a group has acknowledged, as far as its lag and its pending entries
tell. The loudest 30 groups are shown.

With --once it looks twice, one interval apart, prints once and ends.`,
		Example: "  headwater top\n  headwater top --once --json",
		Args:    cobra.NoArgs,
	}
	c.Flags().BoolVar(&once, "once", false, "print once and end")
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "how often to look")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if interval <= 0 {
			return es.Invalid("--interval %s", interval)
		}
		if _, err := a.connect(c.Context()); err != nil {
			return err
		}
		return a.watch(c.Context(), once, interval)
	}
	return c
}

// look is what is seen at one time.
type look struct {
	At      string        `json:"at"`
	Servers []serverLook  `json:"servers"`
	Streams []streamLook  `json:"streams"`
	Groups  []groupLook   `json:"groups"`
	Unpub   int64         `json:"unpublished"`
	Dead    int64         `json:"dead_letters"`
	took    time.Duration // since the look before
}

type serverLook struct {
	Addr      string `json:"addr"`
	Ops       int64  `json:"ops_per_s"`
	Memory    int64  `json:"memory_bytes"`
	MaxMemory int64  `json:"max_memory_bytes"` // 0 = no limit
	Clients   int64  `json:"clients"`
	Blocked   int64  `json:"blocked"`
}

type streamLook struct {
	inspect.Stream
	In float64 `json:"in_per_s"`
}

type groupLook struct {
	Topic   string  `json:"topic"`
	Group   string  `json:"group"`
	Lag     *int64  `json:"lag"`
	Pending int64   `json:"pending"`
	OldMS   int64   `json:"oldest_ms"`
	Failing int64   `json:"failing"`
	Live    int     `json:"live"`
	Out     float64 `json:"out_per_s"`
}

// watch looks until it is interrupted, which is how it ends.
func (a *app) watch(ctx context.Context, once bool, interval time.Duration) error {
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	last := time.Now()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := a.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		now.took, last = time.Since(last), time.Now()
		now.rates(before)
		if err := a.show(now, func(w io.Writer) { a.draw(w, now, !once) }); err != nil || once {
			return err
		}
		before = now
	}
}

func (a *app) look(ctx context.Context) (*look, error) {
	l := &look{At: output.Time(time.Now()), Servers: []serverLook{}, Streams: []streamLook{}, Groups: []groupLook{}}
	err := inspect.EachNode(ctx, a.rdb, func(ctx context.Context, n inspect.Node) error {
		info, err := inspect.ReadInfo(ctx, n.Client)
		l.Servers = append(l.Servers, serverLook{
			n.Addr, info.Int("instantaneous_ops_per_sec"), info.Int("used_memory"), info.Int("maxmemory"), info.Int("connected_clients"), info.Int("blocked_clients"),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	topics, err := recovery.Topics(ctx, a.rdb)
	if err != nil {
		return nil, err
	}
	for _, topic := range topics {
		if err := l.topic(ctx, a.rdb, topic); err != nil {
			return nil, err
		}
	}
	types, err := inspect.Types(ctx, a.rdb)
	for _, t := range types {
		if err == nil {
			var n int64
			n, err = inspect.Notes(ctx, a.rdb, t)
			l.Unpub += n
		}
	}
	return l, err
}

func (l *look) topic(ctx context.Context, rdb redis.UniversalClient, topic string) error {
	s, err := inspect.ReadStream(ctx, rdb, topic)
	if err != nil {
		return err
	}
	l.Streams = append(l.Streams, streamLook{Stream: s})
	l.Dead += s.DeadLetters
	groups, err := inspect.ReadGroups(ctx, rdb, topic)
	for i := range groups {
		g := &groups[i]
		l.Groups = append(l.Groups, groupLook{
			Topic: g.Topic, Group: g.Name, Lag: g.Unread, Pending: g.Pending, OldMS: g.OldestMS, Failing: g.Failing, Live: g.Live(),
		})
	}
	return err
}

// rates compares with an earlier look.
func (l *look) rates(before *look) {
	added, todo := map[string]int64{}, map[[2]string]int64{}
	for _, s := range before.Streams {
		added[s.Topic] = s.Added
	}
	for _, g := range before.Groups {
		if g.Lag != nil {
			todo[[2]string{g.Topic, g.Group}] = *g.Lag + g.Pending
		}
	}
	in := map[string]int64{}
	for i := range l.Streams {
		s := &l.Streams[i]
		if was, ok := added[s.Topic]; ok && s.Added >= was {
			in[s.Topic] = s.Added - was
			s.In = float64(in[s.Topic]) / l.took.Seconds()
		}
	}
	for i := range l.Groups {
		g := &l.Groups[i]
		if was, ok := todo[[2]string{g.Topic, g.Group}]; ok && g.Lag != nil {
			g.Out = max(0, float64(was+in[g.Topic]-*g.Lag-g.Pending)/l.took.Seconds())
		}
	}
}

// draw writes a look at once, over the one before where that is possible.
func (a *app) draw(w io.Writer, l *look, over bool) {
	var b bytes.Buffer
	if over && isTerminal(w) {
		b.WriteString("\x1b[H\x1b[2J")
	}
	fmt.Fprintf(&b, "%s  %s   %s   %s\n\n", l.At, output.Clean(a.where), plural(l.Unpub, "unpublished note"), plural(l.Dead, "dead letter"))
	servers := output.Table{
		Head:  []string{"SERVER", "OPS/S", "MEMORY", "OF", "CLIENTS", "BLOCKED"},
		Right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true},
	}
	for _, s := range l.Servers {
		servers.Add(s.Addr, s.Ops, output.Bytes(s.Memory), size(s.MaxMemory), s.Clients, s.Blocked)
	}
	servers.Write(&b)
	streams := output.Table{Head: []string{"STREAM", "IN/S", "LENGTH", "SIZE", "DEAD"}, Right: map[int]bool{1: true, 2: true, 3: true, 4: true}}
	for _, s := range l.Streams {
		streams.Add(s.Topic, fmt.Sprintf("%.1f", s.In), s.Length, size(s.Bytes), s.DeadLetters)
	}
	fmt.Fprintln(&b)
	streams.Write(&b)
	groups := output.Table{
		Head:  []string{"GROUP", "OF", "OUT/S", "LAG", "PENDING", "OLDEST", "FAILING", "LIVE"},
		Right: map[int]bool{2: true, 3: true, 4: true, 5: true, 6: true, 7: true},
	}
	for _, g := range loudest(l.Groups) {
		groups.Add(g.Group, g.Topic, fmt.Sprintf("%.1f", g.Out), lag(g.Lag), g.Pending, age(g.OldMS), g.Failing, g.Live)
	}
	fmt.Fprintln(&b)
	groups.Write(&b)
	_, _ = w.Write(b.Bytes()) // a terminal that is gone is nobody's trouble
}
