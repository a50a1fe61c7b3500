package wire

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/headwater-go/headwater/es"
)

// commitHead writes what comes before a stream's events, or before a state event's own members.
func (w *writer) commitHead(c *es.Commit) {
	w.text(`{"id":`, c.ID)
	w.text(`,"contextName":`, c.Aggregate.Type.Context)
	w.text(`,"aggregateName":`, c.Aggregate.Type.Name)
	w.header(`,"header":`, c.Header)
	w.text(`,"aggregateId":`, c.Aggregate.ID)
	w.text(`,"tenantId":`, c.Aggregate.Tenant)
	w.text(`,"ownerId":`, c.OwnerID)
	w.text(`,"spaceId":`, c.SpaceID)
	w.text(`,"commandId":`, c.CommandID)
	w.text(`,"requestId":`, c.RequestID)
	w.integer(`,"version":`, c.Version)
}

// events writes the events and the end of the document.
func (w *writer) events(t tables, c *es.Commit) {
	if len(c.Events) == 0 {
		w.fail("body", es.Invalid("commit has no events"))
	}
	w.lit(`,"body":[`)
	a := t.of(c.Aggregate.Type)
	for i := range c.Events {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		n, err := a.eventNames(&c.Events[i])
		if err != nil {
			w.fail("body", err)
		}
		w.text(`{"id":`, c.Events[i].ID)
		w.text(`,"name":`, n.Name)
		w.text(`,"revision":`, n.Revision)
		w.text(`,"bodyType":`, n.BodyType)
		w.body(`,"body":`, c.Events[i].Body)
		w.b = append(w.b, '}')
	}
	w.time(`],"createTime":`, c.CreateTime)
	w.b = append(w.b, '}')
}

// commit is the commit that a document of events holds.
func (r *reader) commit(t tables) es.Commit {
	a, at := t.typeOf(r.notBlank(fieldContext, r.fields[fieldContext]), r.notBlank(fieldAggregate, r.fields[fieldAggregate]))
	c := es.Commit{
		ID: r.str(fieldID), Header: r.headers(),
		Aggregate: es.AggregateID{Type: at, ID: r.str(fieldAggregateID), Tenant: r.str(fieldTenant)},
		OwnerID:   r.optional(fieldOwner), SpaceID: r.optional(fieldSpace),
		CommandID: r.str(fieldCommand), RequestID: r.str(fieldRequest),
		Version: r.integer(fieldVersion), CreateTime: r.time(fieldCreateTime),
	}
	if body := r.fields[fieldBody]; body.kind != array {
		r.blame(fieldBody, body, "a list of events")
	} else if len(r.events) == 0 && r.err == nil {
		r.err = es.Corrupt("no events")
	}
	if r.err != nil {
		return c
	}
	c.Events = make([]es.Event, 0, len(r.events))
	for i := range r.events {
		if c.Events = r.appendEvent(c.Events, a, &r.events[i]); r.err != nil {
			return c
		}
	}
	c.Derive()
	return c
}

// appendEvent adds what the stored event is today: itself, or what upcasters make of it.
func (r *reader) appendEvent(events []es.Event, a *aggregate, raw *rawEvent) []es.Event {
	e := es.Event{ID: r.toText(fieldID, raw.id), Name: r.notBlank(fieldName, raw.name), Revision: r.notBlank(fieldRevision, raw.revision)}
	known, upcaster := a.eventNamed(e.Name, e.Revision), a.upcaster(e.Name, e.Revision)
	if raw.bodyType.kind != absent || known == nil && upcaster == nil { // Wow wants it only where the name says nothing
		e.BodyType = r.toText(fieldBodyType, raw.bodyType)
	}
	body := r.stored(fieldBody, raw.body)
	if r.err != nil {
		return events
	}
	if upcaster == nil {
		r.err = a.decodeEvent(&e, known, body)
		return append(events, e)
	}
	var document es.Raw
	if document, r.err = body.raw(); r.err == nil {
		events, r.err = a.appendUpcast(events, e, document)
	}
	return events
}

// stored is a body or state as one of the codecs stores it.
type stored struct {
	b         []byte
	packed    bool // MessagePack
	unchecked bool // see token
}

func (s stored) decode(target any, o json.Options) (err error) {
	if p, ok := target.(*es.Raw); ok {
		*p, err = s.raw()
		return err
	}
	if s.packed {
		return decodePacked(s.b, target)
	}
	return decodeJSON(s.b, target, o)
}

// raw is a copy.
func (s stored) raw() (es.Raw, error) {
	if s.packed {
		return rawOf(s.b), nil
	}
	if s.unchecked {
		if err := checkJSON(s.b); err != nil {
			return nil, err
		}
	}
	return bytes.Clone(s.b), nil
}

// decodeEvent gives e its body: typed where its name or its body type is known, else a
// copy of raw.
func (a *aggregate) decodeEvent(e *es.Event, known *entry, body stored) error {
	if known == nil && a != nil {
		known = a.eventsByBodyType[e.BodyType]
	}
	var err error
	if known == nil {
		e.Body, err = body.raw()
		return err
	}
	e.BodyType = known.bodyType
	e.Body, err = known.decode(body)
	if err != nil {
		return fmt.Errorf("event %q revision %q: %w", e.Name, e.Revision, err)
	}
	return nil
}
