package recovery

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// Schedule says which letters are replayed by themselves, and when.
type Schedule struct {
	// Letters are those that are meant. Their Reason defaults to [Limit]: the others are
	// for people, since another try mends none of them.
	Letters LetterFilter
	// MinBackoff is how old a letter is when it is replayed the first time; it doubles
	// with each replay. Defaults to 3 minutes.
	MinBackoff time.Duration
	// MaxReplays is how often a message is replayed; then its letter stays. Defaults to 10.
	MaxReplays int
	// Look is the pause between looks, each of which reads the letters. Defaults to 1 minute.
	Look time.Duration
	// Replay replays a letter; an [es.ErrNotFound] says that somebody else has done so.
	// Defaults to [DeadLetters.Replay].
	Replay func(ctx context.Context, l Letter) (retry string, err error)
	// Logger hears of letters that could not be replayed; they are tried on at each
	// look. Defaults to [slog.Default].
	Logger *slog.Logger
}

// ReplayOnSchedule replays letters when they are due, by the clock of Redis, until ctx is
// done. Any number of processes may do so: a letter is replayed once.
func (d *DeadLetters) ReplayOnSchedule(ctx context.Context, s Schedule) error {
	if s.MinBackoff < 0 || s.MaxReplays < 0 || s.Look < 0 {
		return &es.Error{Op: "replay dead letters on schedule", Err: es.Invalid("a limit is negative")}
	}
	s = s.withDefaults(d)
	for ctx.Err() == nil {
		failed, err := d.look(ctx, &s)
		if err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "dead letters were not replayed; trying on", "letters", failed, "error", err)
		}
		_ = waitUntil(ctx, time.Now().Add(s.Look)) // the end of ctx ends the loop
	}
	return nil
}

func (s Schedule) withDefaults(d *DeadLetters) Schedule {
	if s.Letters.Reason == "" {
		s.Letters.Reason = Limit
	}
	if s.MinBackoff == 0 {
		s.MinBackoff = 3 * time.Minute
	}
	if s.MaxReplays == 0 {
		s.MaxReplays = 10
	}
	if s.Look == 0 {
		s.Look = time.Minute
	}
	if s.Replay == nil {
		s.Replay = func(ctx context.Context, l Letter) (string, error) { return d.Replay(ctx, l.Topic, l.ID) }
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	return s
}

// look replays what is due. It returns how many letters could not be replayed, and why
// the last of them, or why it ended.
func (d *DeadLetters) look(ctx context.Context, s *Schedule) (failed int, last error) {
	now, err := redisrun.Do(ctx, 0, func() (time.Time, error) { return d.rdb.Time(ctx).Result() })
	if err != nil {
		return 0, err
	}
	filter := s.Letters
	topics, newest, err := d.newest(ctx, filter)
	if filter.Topics = topics; err != nil || len(topics) == 0 {
		return 0, err
	}
	for l, err := range d.oldestFirst(ctx, "replay dead letters on schedule", filter, newest) {
		if err != nil {
			return failed, err
		}
		if l.Replays >= s.MaxReplays || now.Before(l.Last.Add(doubled(s.MinBackoff, l.Replays))) {
			continue
		}
		// Where it is gone, somebody else was faster.
		if _, err := s.Replay(ctx, l); err != nil && (!errors.Is(err, es.ErrNotFound) || errors.Is(err, ErrNoGroup)) {
			failed, last = failed+1, err
		}
		if ctx.Err() != nil {
			return failed, ctx.Err()
		}
	}
	return failed, last
}

// doubled is d · 2^n, as far as it can be told.
func doubled(d time.Duration, n int) time.Duration {
	if n > 62 || d > math.MaxInt64>>n {
		return math.MaxInt64
	}
	return d << n
}
