package recovery

import "time"

// sighting is an owner whose deadline had passed.
type sighting struct {
	deadline string
	since    time.Time
}

// see remembers since when each owner's deadline has been seen to have passed.
func (s *sweep) see(owners []owner) {
	seen := map[string]sighting{}
	for _, o := range owners {
		if o.state != hasPassed {
			continue
		}
		seen[o.name] = sighting{o.deadline, time.Now()}
		if before := s.passed[o.name]; before.deadline == o.deadline {
			seen[o.name] = before
		}
	}
	s.passed = seen
}

// surely reports whether an owner whose deadline has passed had the chance to renew it.
// Where this consumer itself had trouble with the server of late, its peers had it too:
// they get half a lease from when they were first seen late, in which each tries again.
func (s *sweep) surely(o owner) bool {
	s.mu.Lock()
	trouble := s.trouble
	s.mu.Unlock()
	return time.Since(trouble) > s.lease() || time.Since(s.passed[o.name].since) >= s.lease()/2
}

// note remembers a renewal that failed or was slow.
func (g *Group) note(began time.Time, err error) {
	if err == nil && time.Since(began) < g.lease()/6 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trouble = time.Now()
}
