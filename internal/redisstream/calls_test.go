package redisstream_test

import (
	"context"
	"strings"
	"sync"
	"time"
)

// calls records what handlers were called for.
type calls struct {
	mu   sync.Mutex
	seen []string
	at   []time.Time
}

func (c *calls) add(text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen, c.at = append(c.seen, text), append(c.at, time.Now())
	n := 0
	for _, s := range c.seen {
		if s == text {
			n++
		}
	}
	return n
}

func (c *calls) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.seen...)
}

// of are the calls of one key, in order.
func (c *calls) of(key string) []string {
	var texts []string
	for _, s := range c.all() {
		if strings.HasPrefix(s, key+"|") {
			texts = append(texts, s)
		}
	}
	return texts
}

func (c *calls) count(text string) (n int) {
	for _, s := range c.all() {
		if s == text {
			n++
		}
	}
	return n
}

func (c *calls) handle(_ context.Context, text string) error {
	c.add(text)
	return nil
}
