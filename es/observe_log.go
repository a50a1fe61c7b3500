package es

import (
	"context"
	"log/slog"
)

// LogObserver logs every observation: what is lost, or does not work, as a warning, what
// mends it at info level, and what is as it should be at debug level. The errors of
// undecodable messages are left out, since they may quote them; their dead letters have
// them. It limits nothing: a thousand failures are a thousand lines.
func LogObserver(log *slog.Logger) Observer { return logObserver{log} }

type logObserver struct{ log *slog.Logger }

func (l logObserver) Observe(ctx context.Context, o Observation) {
	switch o := o.(type) {
	case Published:
		level := slog.LevelDebug
		if o.Err != nil {
			level = slog.LevelWarn
		}
		l.log.Log(ctx, level, "published", "topic", o.Topic, "messages", o.Messages, "took", o.Took, "error", o.Err)
	case Received:
		l.message(ctx, slog.LevelDebug, "received", o.Delivery)
	case Undecodable:
		l.message(ctx, slog.LevelWarn, "undecodable", o.Delivery, "reason", string(o.Reason))
	case Handled:
		l.message(ctx, slog.LevelDebug, "handled", o.Delivery, "took", o.Took)
	case Failed:
		l.message(ctx, slog.LevelWarn, "failed", o.Delivery, "took", o.Took, "error", o.Err)
	case Retried:
		l.message(ctx, slog.LevelInfo, "to be retried", o.Delivery, "after", o.After)
	case DeadLettered:
		l.message(ctx, slog.LevelWarn, "dead-lettered", o.Delivery, "reason", o.Reason)
	default:
		l.state(ctx, o)
	}
}

func (l logObserver) message(ctx context.Context, level slog.Level, what string, d Delivery, more ...any) {
	if !l.log.Enabled(ctx, level) {
		return
	}
	args := append([]any{"topic", d.Topic, "group", d.Group, "id", d.ID, "attempt", d.Attempt}, more...)
	l.log.Log(ctx, level, what, args...)
}

// state logs what is of no single message that is handled.
func (l logObserver) state(ctx context.Context, o Observation) {
	switch o := o.(type) {
	case Subscribed:
		l.log.InfoContext(ctx, "subscribed", "topic", o.Topic, "group", o.Group, "consumer", o.Consumer)
	case Unsubscribed:
		l.log.InfoContext(ctx, "unsubscribed", "topic", o.Topic, "group", o.Group, "consumer", o.Consumer)
	case Replayed:
		l.log.InfoContext(ctx, "dead letter replayed", "topic", o.Topic, "group", o.Group, "letter", o.Letter)
	case LettersExpired:
		l.log.WarnContext(ctx, "dead letters removed", "topic", o.Topic, "too old", o.TooOld, "too many", o.TooMany)
	case Claimed:
		l.log.InfoContext(ctx, "claimed", "topic", o.Topic, "group", o.Group, "claimed", o.Claimed, "found", o.Found)
	case LeaseLost:
		l.log.WarnContext(ctx, "lease lost", "topic", o.Topic, "group", o.Group, "consumer", o.Consumer)
	case TakenOver:
		l.log.WarnContext(ctx, "handled messages were taken over", "topic", o.Topic, "group", o.Group, "ids", o.IDs)
	case Missing:
		l.log.WarnContext(ctx, "pending messages are no longer in the stream", "topic", o.Topic, "group", o.Group, "ids", o.IDs)
	case Unavailable:
		l.log.WarnContext(ctx, "subscription unavailable", "topic", o.Topic, "group", o.Group, "consumer", o.Consumer, "error", o.Cause)
	case Healed:
		l.log.InfoContext(ctx, "subscription healed", "topic", o.Topic, "group", o.Group, "consumer", o.Consumer, "after", o.After)
	case GroupRestored:
		l.log.WarnContext(ctx, "group restored", "topic", o.Topic, "group", o.Group, "from", string(o.From))
	case Trimmed:
		level := slog.LevelInfo
		if o.Lost > 0 {
			level = slog.LevelWarn
		}
		l.log.Log(ctx, level, "trimmed", "topic", o.Topic, "removed", o.Removed, "lost", o.Lost, "held back by", o.HeldBack)
	}
}
