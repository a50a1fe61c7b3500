package redisstream

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// limiter lets one line through in ten seconds for each cause, and counts the rest.
type limiter struct {
	log   *slog.Logger
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	next    time.Time
	skipped int
}

const quiet = 10 * time.Second

func newLimiter(log *slog.Logger) *limiter { return &limiter{log: log, lines: map[string]*line{}} }

// Warn logs what, unless it was logged of the same topic less than ten seconds ago.
func (l *limiter) Warn(ctx context.Context, what string, args ...any) {
	cause := fmt.Sprint(append([]any{what}, args[:min(len(args), 4)]...)...)
	l.mu.Lock()
	n := l.lines[cause]
	if n == nil {
		n = &line{}
		l.lines[cause] = n
	}
	now := time.Now()
	if now.Before(n.next) {
		n.skipped++
		l.mu.Unlock()
		return
	}
	skipped := n.skipped
	n.next, n.skipped = now.Add(quiet), 0
	l.mu.Unlock()
	if skipped > 0 {
		args = append(args, "again", skipped)
	}
	l.log.WarnContext(ctx, what, args...)
}
