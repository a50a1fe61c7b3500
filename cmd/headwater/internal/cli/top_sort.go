package cli

import (
	"cmp"
	"slices"
)

// loudest are the groups with most to do, 30 at most.
func loudest(groups []groupLook) []groupLook {
	todo := func(g groupLook) int64 {
		if g.Lag == nil {
			return g.Pending
		}
		return g.Pending + *g.Lag
	}
	sorted := slices.Clone(groups)
	slices.SortStableFunc(sorted, func(a, b groupLook) int { return cmp.Compare(todo(b), todo(a)) })
	return sorted[:min(30, len(sorted))]
}
