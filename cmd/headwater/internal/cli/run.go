// Package cli is the commands, one file each. Every one of them reads only, unless its
// help says otherwise; what it prints for programs is one JSON document.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
	"github.com/headwater-go/headwater/es"
)

// The exit codes that all commands share; doctor and migrate say more with them.
const (
	exitDone        = 0
	exitFailed      = 1   // the server refused, or what was asked for is damaged
	exitUsage       = 2   // the command line is wrong, or nobody confirmed; nothing was changed
	exitNotFound    = 3   // what was asked for is not there
	exitInterrupted = 130 // stopped by a signal; what was done until then is told
)

// Environment is what a command has of the process.
type Environment struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Interactive says that somebody at In can answer. Defaults to whether In is a terminal.
	Interactive bool
}

// app is one run of the program.
type app struct {
	Environment
	json        bool
	urlFlag     string
	urlFile     string
	secrets     []string // passwords, which no output may hold
	rdb         redis.UniversalClient
	where       string // server and database, for people
	commandRuns bool   // the command line was understood
}

// Run runs the command that args name, and returns the exit code.
func Run(ctx context.Context, args []string, env Environment) int {
	a := &app{Environment: env}
	if !a.Interactive {
		a.Interactive = isTerminal(env.In)
	}
	a.json = slices.Contains(args, "--json") // also where the flags cannot be read
	root := a.root()                         //nolint:contextcheck // cobra hands the context to the command that runs
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	err := root.ExecuteContext(ctx)
	if a.rdb != nil {
		_ = a.rdb.Close() // the run is over
	}
	return a.report(ctx, err)
}

// Root is the tree of all commands, for the pages that are made of it.
func Root() *cobra.Command {
	return (&app{Environment: Environment{Out: io.Discard, Err: io.Discard}}).root()
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "headwater",
		Short: "Look at what Headwater keeps in Redis, and mend it",
		Long: `Headwater looks at the aggregates, streams, groups, dead letters, notes, reservations
and snapshots that services keep in Redis, finds what is wrong, and mends it.

It only reads, unless the help of a command says otherwise; what destroys asks before,
or takes --yes.

The server is given by REDIS_URL, by a file (--redis-file), or by --redis:

  redis://[user@]host[:port][/db]                      rediss:// for TLS
  redis+cluster://host[:port],host[:port]…             rediss+cluster://
  redis+sentinel://host[:port],host[:port]…/master[/db]  rediss+sentinel://

A password never stands on the command line, where every user of the host can read it.
It stands in the URL of REDIS_URL or of the file, or in HEADWATER_REDIS_PASSWORD or
REDISCLI_AUTH.

Exit codes: 0 done, 1 failed, 2 wrong command line or not confirmed, 3 not found,
130 interrupted. The commands doctor and migrate have their own; see their help.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.NoArgs,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error { a.commandRuns = true; return nil },
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		root.Version = info.Main.Version
	}
	f := root.PersistentFlags()
	f.StringVar(&a.urlFlag, "redis", "", "URL of the server, without a password (default: REDIS_URL)")
	f.StringVar(&a.urlFile, "redis-file", "", "file whose first line is the URL of the server")
	f.BoolVar(&a.json, "json", a.json, "print one JSON document, also for errors")
	root.AddCommand(a.aggregates(), a.events(), a.snapshots(), a.streams(),
		a.groups(), a.dlq(), a.outbox(), a.prepare(), a.doctor(), a.migrate(), a.top(), a.bench())
	return root
}

// group is a command that only has commands.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	g.AddCommand(commands...)
	return g
}

// failure is an error with an exit code of its own. One without an error was told already.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func (a *app) code(ctx context.Context, err error) int {
	var f *failure
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &f):
		return f.code
	case !a.commandRuns, errors.Is(err, es.ErrInvalid):
		return exitUsage
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, es.ErrNotFound):
		return exitNotFound
	}
	return exitFailed
}

// report tells an error to whoever is there.
func (a *app) report(ctx context.Context, err error) int {
	code := a.code(ctx, err)
	var f *failure
	if err == nil || errors.As(err, &f) && f.err == nil {
		return code
	}
	text := a.redact(err.Error())
	if code == exitInterrupted {
		text = "interrupted: " + text
	}
	if a.json {
		_ = output.JSON(a.Out, map[string]any{"error": map[string]any{"kind": a.kind(err, code), "message": text, "exit": code}}) // nobody is left to tell
		return code
	}
	fmt.Fprintln(a.Err, "headwater:", output.Clean(text))
	if !a.commandRuns {
		fmt.Fprintln(a.Err, "Try --help.")
	}
	return code
}

// kind is the word for an error, for programs.
func (a *app) kind(err error, code int) string {
	switch {
	case !a.commandRuns, errors.Is(err, es.ErrInvalid):
		return "usage"
	case code == exitInterrupted:
		return "interrupted"
	case errors.Is(err, errNotConfirmed):
		return "not_confirmed"
	case errors.Is(err, es.ErrNotFound):
		return "not_found"
	}
	return "failed"
}

// show prints the document, or what human prints of it.
func (a *app) show(document any, human func(w io.Writer)) error {
	if a.json {
		return output.JSON(a.Out, document)
	}
	human(a.Out)
	return nil
}

// note tells people something beside the result, which goes to standard error.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.Err, output.Clean(fmt.Sprintf(format, args...)))
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colour wraps text where standard output is a terminal whose user wants colours.
func (a *app) colour(code, text string) string {
	if a.json || a.Getenv("NO_COLOR") != "" || a.Getenv("TERM") == "dumb" || !isTerminal(a.Out) {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
