package report

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
)

const barWidth = 30

// stall is how long nothing must be done for the hint to be shown.
const stall = 10 * time.Second

// Progress is how many of all commands are done.
type Progress struct {
	Done *atomic.Int64
	All  int
	// Bar draws a bar again and again, instead of a line for each tenth.
	Bar bool
	// Hint says what may be wrong when nothing moves.
	Hint string
}

// Show shows the progress until ctx is done. It leaves the cursor at the beginning of a
// line.
func (s Style) Show(ctx context.Context, w io.Writer, p Progress) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	start, tenths := time.Now(), 0
	before, moved := 0, start
	for {
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		n := int(p.Done.Load())
		rate := Grouped(int(Rate(n, time.Since(start))))
		switch reached := n * 10 / max(p.All, 1); {
		case p.Bar:
			full := n * barWidth / max(p.All, 1)
			drawn := s.paint("32", strings.Repeat("█", full)) + strings.Repeat("░", barWidth-full)
			fmt.Fprintf(w, "\r%s %3d %%  %s of %s commands, %s a second\x1b[K", drawn, n*100/max(p.All, 1), Grouped(n), Grouped(p.All), rate)
		case reached > tenths:
			tenths = reached
			fmt.Fprintf(w, "%3d %%  %s of %s commands, %s a second\n", n*100/max(p.All, 1), Grouped(n), Grouped(p.All), rate)
		}
		if ended {
			if p.Bar {
				fmt.Fprintln(w)
			}
			return
		}
		if n != before {
			before, moved = n, time.Now()
		} else if time.Since(moved) > stall {
			moved = time.Now()
			s.hint(w, p)
		}
	}
}

func (s Style) hint(w io.Writer, p Progress) {
	if p.Bar {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "nothing was carried out for %v; %s\n", stall, p.Hint)
}
