package es

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Health is an [Observer] that knows which subscriptions cannot do their work. Its zero
// value is ready to be the observer of any number of buses; Check fits service.Part.Health.
type Health struct {
	mu     sync.Mutex
	failed map[Subscribed]Problem
}

// Problem is why a subscription cannot work on a topic, and since when, by this process's
// clock.
type Problem struct {
	Topic, Group, Consumer string
	Since                  time.Time
	Cause                  error
}

// Observe implements [Observer].
func (h *Health) Observe(_ context.Context, o Observation) {
	switch o := o.(type) {
	case Unavailable:
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.failed == nil {
			h.failed = map[Subscribed]Problem{}
		}
		h.failed[Subscribed{o.Topic, o.Group, o.Consumer}] = Problem{o.Topic, o.Group, o.Consumer, time.Now(), o.Cause}
	case Healed:
		h.forget(Subscribed{o.Topic, o.Group, o.Consumer})
	case Unsubscribed:
		h.forget(Subscribed(o))
	}
}

func (h *Health) forget(s Subscribed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.failed, s)
}

// Problems are those there are now, the oldest first.
func (h *Health) Problems() []Problem {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Problem, 0, len(h.failed))
	for _, p := range h.failed {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Problem) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Consumer, b.Consumer))
	})
	return all
}

// Check is an [ErrUnavailable] that names all problems; nil = there are none.
func (h *Health) Check(context.Context) error {
	var all []error
	for _, p := range h.Problems() {
		all = append(all, fmt.Errorf("%w: group %s of %s since %s: %w", ErrUnavailable, p.Group, p.Topic, p.Since.UTC().Format(time.RFC3339), p.Cause))
	}
	return errors.Join(all...)
}
