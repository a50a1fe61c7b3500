package aggregate

import (
	"container/list"
	"sync"

	"github.com/headwater-go/headwater/es"
)

// cache keeps aggregates as their last command left them, the latest used ones. Whoever
// takes one owns it: so no two commands evolve the same state.
type cache[S any] struct {
	mu    sync.Mutex
	of    map[es.AggregateID]*list.Element
	order list.List // of *live[S], the latest used one first
}

// take is the kept aggregate that cmd is for; nil where there is none.
func (c *cache[S]) take(cmd *es.Command) *live[S] {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.of[cmd.Aggregate]
	if e == nil {
		return nil
	}
	delete(c.of, cmd.Aggregate)
	now, _ := c.order.Remove(e).(*live[S])
	return now
}

// keep keeps a copy, so that who keeps nothing allocates nothing.
func (r *Repository[S]) keep(now *live[S]) {
	if r.Cached > 0 {
		kept := *now
		r.cache.put(&kept, r.Cached)
	}
}

// put keeps an aggregate, and lets the one go that was not used for longest where there
// are more than limit.
func (c *cache[S]) put(now *live[S], limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[es.AggregateID]*list.Element{}
	}
	if e := c.of[now.Aggregate]; e != nil {
		if other, _ := e.Value.(*live[S]); other.Version > now.Version {
			return
		}
		c.order.Remove(e)
	}
	c.of[now.Aggregate] = c.order.PushFront(now)
	for len(c.of) > limit {
		oldest, _ := c.order.Remove(c.order.Back()).(*live[S])
		delete(c.of, oldest.Aggregate)
	}
}
