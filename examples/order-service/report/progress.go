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

// Progress shows how many of all commands are done until ctx is: as a bar that is drawn
// again and again where bar is set, else as a line for each tenth. It leaves the cursor
// at the beginning of a line.
func (s Style) Progress(ctx context.Context, w io.Writer, bar bool, done *atomic.Int64, all int) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	start, tenths := time.Now(), 0
	for {
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		n := int(done.Load())
		rate := Grouped(int(Rate(n, time.Since(start))))
		switch reached := n * 10 / max(all, 1); {
		case bar:
			full := n * barWidth / max(all, 1)
			drawn := s.paint("32", strings.Repeat("█", full)) + strings.Repeat("░", barWidth-full)
			fmt.Fprintf(w, "\r%s %3d %%  %s of %s commands, %s a second\x1b[K", drawn, n*100/max(all, 1), Grouped(n), Grouped(all), rate)
		case reached > tenths:
			tenths = reached
			fmt.Fprintf(w, "%3d %%  %s of %s commands, %s a second\n", n*100/max(all, 1), Grouped(n), Grouped(all), rate)
		}
		if ended {
			if bar {
				fmt.Fprintln(w)
			}
			return
		}
	}
}
