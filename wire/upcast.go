package wire

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/headwater-go/headwater/es"
)

// maxSteps is how often upcasters may run for one stored event.
const maxSteps = 1000

func (a *aggregate) upcaster(name, revision string) *es.Upcaster {
	if a == nil {
		return nil
	}
	byRevision := a.upcasters[name]
	if u := byRevision[revision]; u != nil {
		return u
	}
	return byRevision[""]
}

// upcast is what e is today. The caller has found that an upcaster fits.
func (a *aggregate) upcast(e es.RawEvent) ([]es.RawEvent, error) {
	var done []es.RawEvent
	todo := []es.RawEvent{e} // the next one is the last
	for steps := 0; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		u := a.upcaster(next.Name, next.Revision)
		if u == nil {
			if err := checkUpcast(next); err != nil {
				return nil, err
			}
			done = append(done, next)
			continue
		}
		if steps++; steps > maxSteps {
			return nil, es.Corrupt("upcasters of event %q revision %q go round in a loop", e.Name, e.Revision)
		}
		results, err := u.Up(next)
		if err != nil {
			return nil, fmt.Errorf("%w: upcaster of event %q revision %q: %w", es.ErrCorrupt, next.Name, next.Revision, err)
		}
		for _, result := range slices.Backward(results) {
			todo = append(todo, result)
		}
	}
	return done, nil
}

func checkUpcast(e es.RawEvent) error {
	if e.Name == "" || e.Revision == "" {
		return es.Corrupt("an upcaster made an event without name or revision")
	}
	if err := checkJSON(e.Body); err != nil {
		return fmt.Errorf("event %q revision %q from an upcaster: %w", e.Name, e.Revision, err)
	}
	return nil
}

// appendUpcast adds what upcasters make of e, whose body is given as JSON.
func (a *aggregate) appendUpcast(events []es.Event, e es.Event, body es.Raw) ([]es.Event, error) {
	parts, err := a.upcast(es.RawEvent{Name: e.Name, Revision: e.Revision, BodyType: e.BodyType, Body: body})
	if err != nil {
		return events, err
	}
	for i, p := range parts {
		part := es.Event{ID: partID(e.ID, i), Name: p.Name, Revision: p.Revision, BodyType: p.BodyType}
		if err := a.decodeEvent(&part, a.eventNamed(p.Name, p.Revision), stored{b: p.Body}); err != nil {
			return events, err
		}
		events = append(events, part)
	}
	return events, nil
}

// partID is the id of the i-th event that upcasters made of one.
func partID(id string, i int) string {
	if i == 0 {
		return id
	}
	return id + "." + strconv.Itoa(i+1)
}
