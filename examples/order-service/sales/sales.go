// Package sales is a read model of the orders, kept up to date by the event bus: how many
// are in which state, and what was paid in which month.
package sales

import (
	"context"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/order"
)

// Store is where the model reads what the bus has not told it.
type Store interface {
	es.Loader
	es.Scanner
}

// Figures are what the model knows.
type Figures struct {
	// States counts the orders by their status.
	States map[order.Status]int
	// Revenue is what was paid by month: "2019-05".
	Revenue map[string]order.Money
	// Heard and Fetched count the commits that came over the bus and from the store.
	Heard, Fetched int
}

// Model sees the commits of each order in the order of their versions, each once and
// none missing, whatever the bus does: the bus rings, the store knows. It is safe for
// concurrent use.
type Model struct {
	store Store

	mu      sync.Mutex
	orders  map[es.AggregateID]*progress
	figures Figures
}

// progress is how far the model has followed one order.
type progress struct {
	status       order.Status
	seen, wanted int // versions
}

// New is an empty model.
func New(store Store) *Model {
	return &Model{
		store: store, orders: map[es.AggregateID]*progress{},
		figures: Figures{States: map[order.Status]int{}, Revenue: map[string]order.Money{}},
	}
}

// Fetch reads all orders from the store. Prepare the subscription first: then nothing
// falls between the two, and what comes twice is passed over.
func (m *Model) Fetch(ctx context.Context) error {
	for id, err := range m.store.Scan(ctx, order.Type, "") {
		if err == nil {
			err = m.fetch(ctx, id, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Hear takes a commit from the bus; where versions before it are missing, it has the
// store tell them.
func (m *Model) Hear(ctx context.Context, c es.Commit) error {
	if at := m.at(c.Aggregate); c.Version > at.seen+1 {
		if err := m.fetch(ctx, c.Aggregate, c.Version-1); err != nil {
			return err
		}
	}
	m.apply(c, &m.figures.Heard)
	return nil
}

// Expect says that an order is at a version, which [Model.Follow] then waits for.
func (m *Model) Expect(id es.AggregateID, version int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.progress(id)
	at.wanted = max(at.wanted, version)
}

// Follow waits until the bus has told all that is expected; after the patience given it
// fetches what is missing.
func (m *Model) Follow(ctx context.Context, patience time.Duration) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); len(m.behind()) > 0 && time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	for _, id := range m.behind() {
		if err := m.fetch(ctx, id, 0); err != nil {
			return err
		}
	}
	return nil
}

// Figures are the model's as it stands.
func (m *Model) Figures() Figures {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.figures
	f.States, f.Revenue = maps.Clone(f.States), maps.Clone(f.Revenue)
	return f
}

// fetch applies what the store holds after what was seen, up to a version; 0 = the newest.
func (m *Model) fetch(ctx context.Context, id es.AggregateID, to int) error {
	return m.applyAll(m.store.Load(ctx, id, es.Versions{From: m.at(id).seen + 1, To: to}))
}

func (m *Model) applyAll(commits iter.Seq2[es.Commit, error]) error {
	for c, err := range commits {
		if err != nil {
			return err
		}
		m.apply(c, &m.figures.Fetched)
	}
	return nil
}

// apply takes a commit that is the next one of its order, and counts it; all others are
// passed over.
func (m *Model) apply(c es.Commit, count *int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.progress(c.Aggregate)
	if c.Version != at.seen+1 {
		return
	}
	at.seen = c.Version
	*count++
	for _, e := range c.Events {
		switch body := e.Body.(type) {
		case order.Placed:
			m.move(at, order.StatusPlaced)
		case order.Confirmed:
			m.move(at, order.StatusConfirmed)
		case order.Paid:
			m.move(at, order.StatusPaid)
			m.figures.Revenue[body.At.Format("2006-01")] += body.Amount
		}
	}
}

func (m *Model) move(at *progress, to order.Status) {
	if at.status != "" {
		m.figures.States[at.status]--
	}
	at.status = to
	m.figures.States[to]++
}

// progress is that of an order, which may be new to the model.
func (m *Model) progress(id es.AggregateID) *progress {
	at := m.orders[id]
	if at == nil {
		at = &progress{}
		m.orders[id] = at
	}
	return at
}

func (m *Model) at(id es.AggregateID) progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.progress(id)
}

// behind are the orders that have gone further than the model has followed them.
func (m *Model) behind() (ids []es.AggregateID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, at := range m.orders {
		if at.seen < at.wanted {
			ids = append(ids, id)
		}
	}
	return ids
}
