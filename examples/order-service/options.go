package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// The commands; none = replay, with a worker in the same process.
const (
	commandWorker = "worker"
	commandReplay = "replay"
)

type options struct {
	command  string
	redis    string
	json     bool
	workers  int
	timeline string
	limit    int
}

const help = `order-service replays a year of a web shop's log (22,367 events, 38,685 commands)
over the command bus and reports from what its aggregates stored and what the event
bus told a read model. Without flags it needs nothing: it starts a Redis of its own
inside the process and forgets everything at the end.

Usage:
  order-service [flags]                     replay the log and carry it out
  order-service replay --redis URL [flags]  replay the log, leave it to workers
  order-service worker --redis URL [flags]  carry out commands until Ctrl-C

Any number of workers and replays may run on one server at once, and be killed.

Flags:
  --redis URL        keep the events on this server: redis://localhost:6379/0, or
                     rediss:// for TLS, redis+cluster:// or redis+sentinel://; a
                     second run finds everything done and changes nothing
  --workers N        carry out so many commands at a time (default 64); the commands
                     of one aggregate keep the log's order
  --limit N          stop after the first N commands of the log
  --timeline ORDER   show this order's timeline (default: the log's first order)
  --json             one line of JSON on standard output instead of the report
  --help             this text

Of these, worker knows --redis and --workers. Progress goes to standard error, the
report to standard output. NO_COLOR turns colours off. A run may be interrupted at
any moment; the same command line goes on.

Exit codes: 0 done (a worker's Ctrl-C too), 1 failed, 2 wrong usage, 130 interrupted.

Examples:
  order-service --limit 2000 --timeline 990003
  order-service --redis redis://localhost:6379/0 --json | jq -r .paid_total
`

// parse reads the command line. Where there is nothing left to do, the options are nil
// and the exit code says why.
func parse(args []string, stdout, stderr io.Writer) (*options, int) {
	var o options
	if len(args) > 0 && (args[0] == commandWorker || args[0] == commandReplay) {
		o.command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("order-service", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.redis, "redis", "", "")
	flags.IntVar(&o.workers, "workers", 64, "")
	if o.command != commandWorker {
		flags.IntVar(&o.limit, "limit", 0, "")
		flags.StringVar(&o.timeline, "timeline", "", "")
		flags.BoolVar(&o.json, "json", false, "")
	}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, help)
		return nil, exitOK
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.command != "" && o.redis == "":
		err = fmt.Errorf("%s needs --redis: nobody else reaches the built-in server", o.command)
	case o.workers < 1 || o.workers > 4096:
		err = fmt.Errorf("--workers must be between 1 and 4096, not %d", o.workers)
	case o.limit < 0:
		err = fmt.Errorf("--limit must not be negative, not %d", o.limit)
	}
	if err != nil {
		return nil, misused(stderr, err)
	}
	return &o, exitOK
}

func misused(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "order-service: %v\nsee order-service --help\n", err)
	return exitUsage
}
