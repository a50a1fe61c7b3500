package recovery

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// maxSuspects limits the ids that one sweep leaves to the next, but for one page.
const maxSuspects = 1000

// findOwn takes what the last sweep found pending and not held, and is not held still,
// then looks for what the next one may take. An entry seen once may be on its way from
// the read that returned it to whoever answers held.
func (s *sweep) findOwn(ctx context.Context) error {
	notHeld := slices.DeleteFunc(s.suspects, s.held)
	s.suspects = nil
	for len(notHeld) > 0 && s.left > 0 {
		n := min(len(notHeld), s.left, pageSize)
		entries, goOn, err := s.claim(ctx, owner{name: s.Consumer}, notHeld[:n])
		s.swept.Found += len(entries)
		if err != nil || !goOn {
			s.suspects = notHeld
			return err
		}
		notHeld = notHeld[n:]
	}
	s.suspects, s.swept.More = notHeld, len(notHeld) > 0
	known := map[string]bool{}
	for _, id := range s.suspects {
		known[id] = true
	}
	return s.pages(ctx, s.Consumer, func(page []redis.XPendingExt) (bool, error) {
		for _, p := range page {
			if p.Idle >= s.lease() && !known[p.ID] && !s.held(p.ID) {
				s.suspects = append(s.suspects, p.ID)
			}
		}
		return len(s.suspects) < maxSuspects, nil
	})
}
