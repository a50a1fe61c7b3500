package es

import "context"

// CommandSender sends commands to whoever carries them out.
type CommandSender interface {
	Send(ctx context.Context, c Command) error
}

// EventPublisher publishes commits of one aggregate, in the order given.
type EventPublisher interface {
	Publish(ctx context.Context, commits ...Commit) error
}

// StatePublisher publishes a state event.
type StatePublisher interface {
	Publish(ctx context.Context, e StateEvent) error
}

// Subscription says who reads what.
type Subscription struct {
	// Group names the readers that share the messages: each is handled by one of them.
	Group string
	// Aggregates are the types whose messages are read.
	Aggregates []AggregateType
}

// CommandSubscriber hands commands to a handler until ctx is done, then returns nil.
type CommandSubscriber interface {
	Subscribe(ctx context.Context, s Subscription, h CommandHandler) error
}

// EventSubscriber hands commits to a handler until ctx is done, then returns nil.
type EventSubscriber interface {
	Subscribe(ctx context.Context, s Subscription, h func(context.Context, Commit) error) error
}

// StateSubscriber hands state events to a handler until ctx is done, then returns nil.
type StateSubscriber interface {
	Subscribe(ctx context.Context, s Subscription, h func(context.Context, StateEvent) error) error
}
