package doctor

import (
	"context"
	"time"
)

// clocks looks at HW016. Half of the round trip does not count.
func (v *visit) clocks(ctx context.Context) {
	for _, n := range v.nodes {
		before := time.Now()
		at, err := n.Client.Time(ctx).Result()
		if err != nil {
			v.unable(n.Addr, "TIME", err)
			continue
		}
		trip := time.Since(before)
		v.drift(n.Addr, at.Sub(before.Add(trip/2)), trip)
	}
}

func (v *visit) drift(addr string, d, trip time.Duration) {
	if d.Abs() > time.Second+trip {
		v.add("HW016", Warning, addr, "the server's clock and this machine's differ by %s", d.Round(time.Millisecond))
	}
}
