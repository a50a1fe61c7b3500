package redistest

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Migration is a slot on its way from one master to another. Between its start and its
// finish the cluster answers for keys of the slot with ASK and TRYAGAIN.
type Migration struct {
	cluster  *Cluster
	slot     int
	from, to *Server
}

// MigrateSlot moves a slot with all its keys to another master.
func (c *Cluster) MigrateSlot(t testing.TB, slot int, from, to *Server) {
	t.Helper()
	m := c.StartMigration(t, slot, from, to)
	m.Finish(t)
}

// StartMigration begins to move a slot and moves no key yet.
func (c *Cluster) StartMigration(t testing.TB, slot int, from, to *Server) *Migration {
	t.Helper()
	m := &Migration{c, slot, from, to}
	fromID, err := from.nodeID()
	must(t, err)
	toID, err := to.nodeID()
	must(t, err)
	m.setSlot(t, to, "IMPORTING", fromID)
	m.setSlot(t, from, "MIGRATING", toID)
	return m
}

// Move moves these keys now.
func (m *Migration) Move(t testing.TB, keys ...string) {
	t.Helper()
	args := []any{"MIGRATE", "127.0.0.1", m.to.port, "", 0, int(patience.Milliseconds()), "KEYS"}
	for _, k := range keys {
		args = append(args, k)
	}
	must(t, m.from.with(func(r *redis.Client) error { return r.Do(t.Context(), args...).Err() }))
}

// Finish moves the keys that are left and gives the slot to its new master.
func (m *Migration) Finish(t testing.TB) {
	t.Helper()
	for {
		var keys []string
		must(t, m.from.with(func(r *redis.Client) (err error) {
			keys, err = r.ClusterGetKeysInSlot(t.Context(), m.slot, 100).Result()
			return err
		}))
		if len(keys) == 0 {
			break
		}
		m.Move(t, keys...)
	}
	toID, err := m.to.nodeID()
	must(t, err)
	// The new owner first: it then wins against what the old one says of the slot.
	m.setSlot(t, m.to, "NODE", toID)
	m.setSlot(t, m.from, "NODE", toID)
	for _, s := range m.cluster.Nodes {
		must(t, poll("owner of slot "+strconv.Itoa(m.slot)+" at "+s.Addr, func(ctx context.Context) error {
			owner, err := s.slotOwner(ctx, m.slot)
			if err == nil && owner != m.to.Addr {
				err = fmt.Errorf("it is %q", owner)
			}
			return err
		}))
	}
}

func (m *Migration) setSlot(t testing.TB, s *Server, state, id string) {
	t.Helper()
	must(t, s.with(func(r *redis.Client) error {
		return r.Do(t.Context(), "CLUSTER", "SETSLOT", m.slot, state, id).Err()
	}))
}

// Slot is the slot of a key.
func (c *Cluster) Slot(t testing.TB, key string) int {
	t.Helper()
	var slot int64
	must(t, c.Nodes[0].with(func(r *redis.Client) (err error) {
		slot, err = r.ClusterKeySlot(t.Context(), key).Result()
		return err
	}))
	return int(slot)
}

// Owner is the master that serves a slot, as the first node that answers has it.
func (c *Cluster) Owner(t testing.TB, slot int) *Server {
	t.Helper()
	for _, asked := range c.Nodes {
		owner, err := asked.slotOwner(t.Context(), slot)
		if err != nil {
			continue
		}
		for _, s := range c.Nodes {
			if s.Addr == owner {
				return s
			}
		}
	}
	t.Fatalf("redistest: nobody serves slot %d", slot)
	return nil
}

// slotOwner is the address of the master that, by what s knows, serves the slot.
func (s *Server) slotOwner(ctx context.Context, slot int) (owner string, err error) {
	err = s.with(func(r *redis.Client) error {
		ranges, err := r.ClusterSlots(ctx).Result()
		for _, slotRange := range ranges {
			if slotRange.Start <= slot && slot <= slotRange.End && len(slotRange.Nodes) > 0 {
				owner = slotRange.Nodes[0].Addr
			}
		}
		return err
	})
	return owner, err
}
