package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

type options struct {
	redis    string
	json     bool
	workers  int
	timeline string
	limit    int
}

const help = `order-service replays a year of a web shop's log (22,367 events, 38,685 commands)
and reports from what its aggregates stored. Without flags it needs nothing: it
starts a Redis of its own inside the process and forgets everything at the end.

Usage:
  order-service [flags]

Flags:
  --redis URL        keep the events on this server: redis://localhost:6379/0, or
                     rediss:// for TLS, redis+cluster:// or redis+sentinel://; a
                     second run finds everything done and changes nothing
  --workers N        so many commands at a time (default 64); the commands of one
                     aggregate keep the log's order
  --limit N          stop after the first N commands of the log
  --timeline ORDER   show this order's timeline (default: the log's first order)
  --json             one line of JSON on standard output instead of the report
  --help             this text

Progress goes to standard error, the report to standard output. NO_COLOR turns
colours off. A run may be interrupted at any moment; the same command line goes on.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

Examples:
  order-service --limit 2000 --timeline 990003
  order-service --redis redis://localhost:6379/0 --json | jq -r .paid_total
`

// parse reads the command line. Where there is nothing left to do, the options are nil
// and the exit code says why.
func parse(args []string, stdout, stderr io.Writer) (*options, int) {
	var o options
	flags := flag.NewFlagSet("order-service", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.redis, "redis", "", "")
	flags.IntVar(&o.workers, "workers", 64, "")
	flags.IntVar(&o.limit, "limit", 0, "")
	flags.StringVar(&o.timeline, "timeline", "", "")
	flags.BoolVar(&o.json, "json", false, "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, help)
		return nil, exitOK
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
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
