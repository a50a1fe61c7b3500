// Headwater is the operator's command line: it looks at what Headwater keeps in Redis,
// and mends it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/cmd/headwater/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Run(ctx, os.Args[1:], cli.Environment{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv})
}

// silent keeps what the client library tells of its connections out of the output; what
// matters of it comes back as an error.
type silent struct{}

// Printf implements the library's logger.
func (silent) Printf(context.Context, string, ...any) {}
