package wire

import (
	"fmt"
	"reflect"

	"github.com/headwater-go/headwater/es"
)

// commandNames are the name and body type under which c is written: its own, else those
// of the table.
func (t tables) commandNames(c *es.Command) (name, bodyType string, err error) {
	if _, raw := c.Body.(es.Raw); raw {
		return c.Name, or(c.BodyType, c.Name), nil
	}
	var known map[reflect.Type]*entry
	if a := t.of(c.Aggregate.Type); a != nil {
		known = a.commands
	}
	e, err := written(known, c.Body)
	if err != nil {
		return "", "", err
	}
	return or(c.Name, e.name), or(c.BodyType, e.bodyType), nil
}

// eventNames are the names under which e is written: its own, else those of the table.
// A raw body was read from somewhere, so its names are all its own.
func (a *aggregate) eventNames(e *es.Event) (es.RawEvent, error) {
	n := es.RawEvent{Name: e.Name, Revision: e.Revision, BodyType: e.BodyType}
	if _, raw := e.Body.(es.Raw); raw {
		return n, nil
	}
	var known map[reflect.Type]*entry
	if a != nil {
		known = a.events
	}
	w, err := written(known, e.Body)
	if err != nil {
		return n, err
	}
	n.Name, n.Revision, n.BodyType = or(n.Name, w.name), or(n.Revision, w.revision), or(n.BodyType, w.bodyType)
	return n, nil
}

// written finds the entry by which a typed body is written.
func written(known map[reflect.Type]*entry, body any) (*entry, error) {
	if body == nil {
		return nil, es.Invalid("there is none")
	}
	if e := known[elem(reflect.TypeOf(body))]; e != nil {
		return e, nil
	}
	return nil, es.Invalid("%T is not in the codec's table of the aggregate", body)
}

// knows is an [es.ErrUnknownType] where no table is for at.
func (t tables) knows(at es.AggregateType) error {
	if t.of(at) == nil {
		return fmt.Errorf("%w: aggregate %q of context %q", es.ErrUnknownType, at.Name, at.Context)
	}
	return nil
}

// decodeCommandBody finds the type of c's body and decodes it.
func (t tables) decodeCommandBody(c *es.Command, body stored) error {
	if err := t.knows(c.Aggregate.Type); err != nil {
		return fmt.Errorf("%w: command %q, body type %q", err, c.Name, c.BodyType)
	}
	e := t.of(c.Aggregate.Type).command(c.Name, c.BodyType)
	if e == nil {
		return fmt.Errorf("%w: command %q, body type %q", es.ErrUnknownType, c.Name, c.BodyType)
	}
	var err error
	c.BodyType = e.bodyType
	if c.Body, err = e.decode(body); err != nil {
		return fmt.Errorf("command %q: %w", c.Name, err)
	}
	if !body.packed { // MessagePack writes the same map in another order each time
		c.Digest = digest(c.Name, body.b)
	}
	return nil
}
