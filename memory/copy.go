package memory

import (
	"slices"
	"time"

	"github.com/headwater-go/headwater/es"
)

// typeKey is what tells types apart, in Redis keys as here: the alias, not the context.
type typeKey struct{ scope, name string }

func keyOf(t es.AggregateType) typeKey { return typeKey{t.Scope(), t.Name} }

// aggregateKey tells aggregates of all types apart.
type aggregateKey struct {
	typeKey
	tenant, id string
}

func aggregateKeyOf(a es.AggregateID) aggregateKey {
	return aggregateKey{keyOf(a.Type), a.Tenant, a.ID}
}

// copyCommit shares nothing with c but the bodies.
func copyCommit(c es.Commit) es.Commit {
	c.Header = slices.Clone(c.Header)
	c.Events = slices.Clone(c.Events)
	c.CreateTime = stamp(c.CreateTime)
	c.Derive()
	return c
}

// stamp is t as messages carry it: in milliseconds, without a zone.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Truncate(time.Millisecond).UTC()
}
