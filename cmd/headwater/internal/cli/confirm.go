package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headwater-go/headwater/cmd/headwater/internal/output"
)

// yesFlag gives a command the flag that answers the question. The environment never does.
func yesFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("yes", false, "do it without asking")
}

// errNotConfirmed says that nobody said yes.
var errNotConfirmed = errors.New("nothing was changed")

// confirm says on which server what would be done, and asks. Its error says that
// nothing was changed.
func (a *app) confirm(ctx context.Context, yes bool, format string, args ...any) error {
	a.note("%s: %s", a.where, fmt.Sprintf(format, args...))
	if yes {
		return nil
	}
	if !a.Interactive {
		return &failure{exitUsage, fmt.Errorf("%w: there is nobody to ask; give --yes", errNotConfirmed)}
	}
	fmt.Fprint(a.Err, "Go on? [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.In).ReadString('\n') // the end of the input is a no
		answer <- line
	}()
	select {
	case <-ctx.Done():
		return &failure{exitUsage, fmt.Errorf("%w: interrupted", errNotConfirmed)}
	case line := <-answer:
		if strings.HasSuffix(line, "\n") && strings.EqualFold(strings.TrimSpace(line), "y") {
			return nil
		}
		return &failure{exitUsage, fmt.Errorf("%w: not confirmed", errNotConfirmed)}
	}
}

// plural is "1 letter" or "2 letters".
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, output.Clean(one))
}
