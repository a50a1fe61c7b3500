package recovery

import (
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// Upkeep says what [Keep] does, and how often.
type Upkeep struct {
	// Name names the duty: of all processes that have it one works at a time. It holds no
	// brace. Defaults to "all".
	Name string
	// Topics are kept. Defaults to all that a subscription ever began on.
	Topics []string
	// Trim says what [Trim] may remove. Without a limit nothing is trimmed.
	Trim TrimOptions
	// Reap are the knobs of [Reap]; a DryRun reports what would go.
	Reap ReapOptions
	// Letters is for how long dead letters are kept.
	Letters Retention
	// Every is the pause between rounds, half of it to one and a half. Defaults to a
	// minute. A process that died is followed by another within three times as long.
	Every time.Duration
	// Report is told what was done to each topic, from the goroutine of [Keep]. The
	// default logs what needs somebody's attention: what failed, was lost, or is held back
	// by which groups.
	Report func(ctx context.Context, k Kept)
}

// Kept is what one round of [Keep] has done to a topic.
type Kept struct {
	Topic   string
	Trimmed Trimmed
	Reaped  Reaped
	Expired Expired
	// Err is what ended the round of this topic early; it is tried again in the next.
	Err error
}

// Keep trims topics, reaps what is gone for good and lets old dead letters go, again and
// again, until ctx is done; then it returns nil. Every process of a service may run it:
// by a lease they take turns. Before anything is done it returns an [es.ErrInvalid] for
// what makes no sense; later errors are reported, and it goes on.
func Keep(ctx context.Context, rdb redis.UniversalClient, u Upkeep) error {
	if u.Name == "" {
		u.Name = "all"
	}
	if u.Every == 0 {
		u.Every = time.Minute
	}
	if u.Report == nil {
		u.Report = logKept
	}
	if err := u.validate(); err != nil {
		return &es.Error{Op: "keep topics", Err: err}
	}
	k := &keeper{Upkeep: u, rdb: rdb, token: rand.Text()}
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if k.held {
				_, _ = k.hold(ctx, time.Millisecond) // else the lease runs out by itself
			}
			return nil
		case <-time.After(u.Every/2 + mathrand.N(u.Every)):
			k.round(ctx)
		}
	}
}

func (u Upkeep) validate() error {
	switch {
	case strings.ContainsAny(u.Name, "{}"):
		return es.Invalid("name %q holds a brace", u.Name)
	case u.Every < time.Millisecond:
		return es.Invalid("every is less than a millisecond")
	case u.Reap.DeadFor < 0, u.Reap.IdleForeign < 0, u.Letters.MaxAge < 0, u.Letters.MaxCount < 0:
		return es.Invalid("a limit is negative")
	}
	for _, topic := range u.Topics {
		if err := checkTopic(topic); err != nil {
			return err
		}
	}
	if u.Trim != (TrimOptions{}) {
		_, err := u.Trim.args()
		return err
	}
	return nil
}

// keeper is one call of [Keep].
type keeper struct {
	Upkeep
	rdb   redis.UniversalClient
	token string
	held  bool
}

// round keeps each topic once, as long as it is this process's turn.
func (k *keeper) round(ctx context.Context) {
	topics := k.Topics
	if mine, err := k.hold(ctx, 3*k.Every); err != nil || !mine {
		k.fail(ctx, err)
		return
	}
	if len(topics) == 0 {
		var err error
		if topics, err = Topics(ctx, k.rdb); err != nil {
			k.fail(ctx, err)
			return
		}
	}
	for _, topic := range topics {
		mine, err := k.hold(ctx, 3*k.Every)
		if err != nil || !mine || ctx.Err() != nil {
			k.fail(ctx, err)
			return
		}
		k.Report(ctx, k.keep(ctx, topic))
	}
}

// fail reports what concerns no topic, unless it is that ctx has ended.
func (k *keeper) fail(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		k.Report(ctx, Kept{Err: &es.Error{Op: "keep topics", Err: err}})
	}
}

func (k *keeper) keep(ctx context.Context, topic string) Kept {
	done := Kept{Topic: topic}
	if k.Trim != (TrimOptions{}) {
		done.Trimmed, done.Err = Trim(ctx, k.rdb, topic, k.Trim)
	}
	if done.Err == nil {
		done.Reaped, done.Err = Reap(ctx, k.rdb, topic, k.Reap)
	}
	if done.Err == nil {
		var expired []Expired
		expired, done.Err = NewDeadLetters(k.rdb).Expire(ctx, k.Letters, topic)
		if done.Expired.Topic = topic; len(expired) > 0 {
			done.Expired = expired[0]
		}
	}
	return done
}

// hold takes the lease, or takes it on, and reports whether it is this process's.
func (k *keeper) hold(ctx context.Context, lease time.Duration) (bool, error) {
	key := []string{rediskey.Upkeep(k.Name)}
	reply, err := redisrun.Do(ctx, 0, func() (any, error) { return lua.LeaseMachine.Run(ctx, k.rdb, key, k.token, milliseconds(lease)) })
	k.held = err == nil && reply == "held"
	return k.held, err
}

func logKept(ctx context.Context, k Kept) {
	log := slog.Default().With("topic", k.Topic)
	if k.Err != nil {
		log.WarnContext(ctx, "upkeep failed; trying on", "error", k.Err)
	}
	for _, b := range k.Trimmed.HeldBack {
		log.WarnContext(ctx, "a group holds trimming back", "group", b.Group, "first", b.First, "pending", b.Pending)
	}
	for _, b := range k.Trimmed.LostBy {
		log.WarnContext(ctx, "a group has lost messages to a lossy limit", "group", b.Group, "first", b.First, "lost", k.Trimmed.Lost)
	}
	if k.Expired.TooOld+k.Expired.TooMany > 0 {
		log.WarnContext(ctx, "dead letters were removed", "too old", k.Expired.TooOld, "too many", k.Expired.TooMany)
	}
}
