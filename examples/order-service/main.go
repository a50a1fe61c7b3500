// Command order-service replays a year of a web shop's log: every event becomes
// commands for orders, items and packages, which go over the command bus to whoever
// carries them out. They decide by their rules and leave their events on Redis, which
// go over the event bus to a read model. Then it says how the shop is doing.
//
//	go run ./examples/order-service                                         # needs nothing
//	go run ./examples/order-service --redis redis://localhost:6379/0        # keeps everything
//	go run ./examples/order-service worker --redis redis://localhost:6379/0 # as many as you like
//	go run ./examples/order-service replay --redis redis://localhost:6379/0 # leaves the work to them
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/term"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/dispatch"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/replay"
	"github.com/headwater-go/headwater/examples/order-service/report"
	"github.com/headwater-go/headwater/examples/order-service/sales"
	"github.com/headwater-go/headwater/examples/order-service/shop"
)

// The exit codes, as --help names them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	logging.Disable() // what go-redis would log on the way comes back as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, code := parse(args, stdout, stderr)
	if o == nil {
		return code
	}
	if o.command == commandWorker {
		return o.connect(ctx, stderr, func(b *backend) int { return o.workUntilInterrupted(ctx, b, stderr) })
	}
	entries, err := replay.Log()
	if err != nil {
		return failed(ctx, stderr, err)
	}
	commands := replay.Commands(entries)
	if o.limit > 0 && o.limit < len(commands) {
		commands = commands[:o.limit]
	}
	if o.timeline == "" {
		o.timeline = entries[0].Order
	}
	if !slices.ContainsFunc(commands, func(c es.Command) bool { return c.Aggregate == order.Type.ID(o.timeline) }) {
		return misused(stderr, fmt.Errorf("--timeline: order %q is not among the %d commands", o.timeline, len(commands)))
	}
	return o.connect(ctx, stderr, func(b *backend) int { return o.serve(ctx, b, commands, stdout, stderr) })
}

// connect has do work with the backend.
func (o *options) connect(ctx context.Context, stderr io.Writer, do func(*backend) int) int {
	b, err := open(ctx, o.redis)
	if errors.Is(err, es.ErrInvalid) {
		return misused(stderr, fmt.Errorf("--redis: %w", err))
	}
	if err != nil {
		return failed(ctx, stderr, err)
	}
	defer b.end()
	return do(b)
}

// serve replays the commands and reports.
func (o *options) serve(ctx context.Context, b *backend, commands []es.Command, stdout, stderr io.Writer) int {
	sum, err := o.replay(ctx, b, commands, stderr)
	s := shop.New(b.store)
	if err == nil {
		sum.Totals, err = s.Count(ctx, o.workers)
	}
	switch {
	case err != nil:
	case o.json:
		err = report.WriteJSON(stdout, sum)
	default:
		if sum.Timeline, err = s.Timeline(ctx, o.timeline); err == nil {
			err = style(stdout).Write(stdout, sum)
		}
	}
	if err != nil {
		return o.stopped(ctx, stderr, sum.Tally, len(commands), err)
	}
	return exitOK
}

// outstanding is how many commands are sent and not answered: enough for some workers
// in several processes.
const outstanding = 512

// replay sends the commands, and waits until they are carried out and the read model
// has heard of it.
func (o *options) replay(ctx context.Context, b *backend, commands []es.Command, stderr io.Writer) (sum report.Summary, err error) {
	desk, model := dispatch.NewDesk(b.rdb, b.commands(b.calls)), sales.New(b.store)
	following, err := b.follow(ctx, model)
	if err != nil {
		return sum, err
	}
	if err := desk.Open(ctx); err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, desk.Close(context.WithoutCancel(ctx))) }()
	ctx, parts := newParts(ctx)
	defer parts.end()
	parts.run(ctx, following)
	parts.run(ctx, desk.Listen)
	if o.command != commandReplay {
		parts.run(ctx, func(ctx context.Context) error { return b.work(ctx, b.worker(), o.workers) })
	}
	ask := func(ctx context.Context, c es.Command) (es.Result, error) {
		result, err := desk.Ask(ctx, c)
		if err == nil && c.Aggregate.Type == order.Type {
			model.Expect(c.Aggregate, result.Version)
		}
		return result, err
	}
	if sum.Tally, sum.Took, err = o.send(ctx, ask, commands, stderr); err == nil {
		err = model.Follow(ctx, patience)
	}
	sum.Sales = model.Figures()
	return sum, err
}

// patience is how long the event bus may take to bring what has been published.
const patience = 5 * time.Second

// send has all commands carried out, and shows how it goes.
func (o *options) send(ctx context.Context, ask es.CommandHandler, commands []es.Command, stderr io.Writer) (replay.Tally, time.Duration, error) {
	p := report.Progress{Done: new(atomic.Int64), All: len(commands), Bar: isTerminal(stderr),
		Hint: "is a worker running on this server? order-service worker --redis URL"}
	var shown sync.WaitGroup
	showing, hide := context.WithCancel(context.WithoutCancel(ctx))
	shown.Go(func() { style(stderr).Show(showing, stderr, p) })
	start := time.Now()
	tally, err := replay.Run(ctx, ask, commands, outstanding, p.Done)
	took := time.Since(start)
	hide()
	shown.Wait()
	return tally, took, err
}

// stopped says how far a replay came that did not come to its end, and how to go on.
func (o *options) stopped(ctx context.Context, stderr io.Writer, tally replay.Tally, all int, err error) int {
	fmt.Fprintf(stderr, "stopped after %s of %s commands\n", report.Grouped(tally.Commands()), report.Grouped(all))
	if o.redis == "" {
		fmt.Fprintln(stderr, "nothing is kept: the built-in server ends with the process; with --redis it would be")
	} else {
		fmt.Fprintln(stderr, "run the same command line again to go on: what was carried out is not carried out twice")
	}
	return failed(ctx, stderr, err)
}

func failed(ctx context.Context, stderr io.Writer, err error) int {
	if ctx.Err() != nil {
		return exitInterrupted // the user knows why
	}
	fmt.Fprintln(stderr, "order-service:", err)
	return exitFailed
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// style has no colour where the output is not a terminal or the user wants none.
func style(w io.Writer) report.Style {
	return report.Style{Color: isTerminal(w) && os.Getenv("NO_COLOR") == ""}
}
