// Command order-service replays a year of a web shop's log: every event becomes
// commands for orders, items and packages, which decide by their rules and leave their
// events on Redis. Then it says, from what is stored, how the shop is doing.
//
//	go run ./examples/order-service                                    # needs nothing
//	go run ./examples/order-service --redis redis://localhost:6379/0   # keeps everything
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
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/replay"
	"github.com/headwater-go/headwater/examples/order-service/report"
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
	store, closeStore, err := open(ctx, o.redis)
	if errors.Is(err, es.ErrInvalid) {
		return misused(stderr, fmt.Errorf("--redis: %w", err))
	}
	if err != nil {
		return failed(ctx, stderr, err)
	}
	defer closeStore()
	return o.serve(ctx, shop.New(store), commands, stdout, stderr)
}

// serve replays the commands and reports.
func (o *options) serve(ctx context.Context, s *shop.Shop, commands []es.Command, stdout, stderr io.Writer) int {
	tally, took, err := o.replay(ctx, s, commands, stderr)
	if err != nil {
		return o.stopped(ctx, stderr, tally, len(commands), err)
	}
	totals, err := s.Count(ctx, o.workers)
	if err != nil {
		return o.stopped(ctx, stderr, tally, len(commands), err)
	}
	sum := report.Summary{Tally: tally, Totals: totals, Took: took}
	if o.json {
		err = report.WriteJSON(stdout, sum)
	} else if sum.Timeline, err = s.Timeline(ctx, o.timeline); err == nil {
		err = style(stdout).Write(stdout, sum)
	}
	if err != nil {
		return o.stopped(ctx, stderr, tally, len(commands), err)
	}
	return exitOK
}

func (o *options) replay(ctx context.Context, s *shop.Shop, commands []es.Command, stderr io.Writer) (replay.Tally, time.Duration, error) {
	var done atomic.Int64
	var shown sync.WaitGroup
	showing, hide := context.WithCancel(context.WithoutCancel(ctx))
	shown.Go(func() { style(stderr).Progress(showing, stderr, isTerminal(stderr), &done, len(commands)) })
	start := time.Now()
	tally, err := replay.Run(ctx, s.Handle, commands, o.workers, &done)
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
