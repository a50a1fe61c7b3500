package wire

import (
	"fmt"
	"maps"
	"slices"

	"github.com/headwater-go/headwater/es"
)

const (
	commitMembers     = 13
	stateEventMembers = commitMembers + 5
	eventMembers      = 5
)

func (p packer) aggregate(id es.AggregateID) {
	p.text("context", id.Type.Context)
	p.text("aggregate name", id.Type.Name)
	p.text("tenant", id.Tenant)
	p.text("aggregate id", id.ID)
}

func (u *unpacker) aggregate(t tables) es.AggregateID {
	_, at := t.typeOf(u.text(), u.text())
	return es.AggregateID{Type: at, Tenant: u.text(), ID: u.text()}
}

// tags are written by name, so that equal tags are equal bytes.
func (p packer) tags(tags es.Tags) {
	p.mapOf(len(tags))
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		p.text("tags", name)
		if tags[name] == nil {
			p.null()
			continue
		}
		p.array(len(tags[name]))
		for _, v := range tags[name] {
			p.text("tags", v)
		}
	}
}

// EncodeCommit implements [es.Codec]. A typed body must be in the aggregate's table.
func (m *MessagePackCodec) EncodeCommit(c *es.Commit) ([]byte, error) {
	p := newPacker(kindCommit)
	p.array(commitMembers)
	p.commit(m.tables, c)
	return p.done("commit")
}

func (p packer) commit(t tables, c *es.Commit) {
	p.text("id", c.ID)
	p.aggregate(c.Aggregate)
	p.header(c.Header)
	p.text("owner", c.OwnerID)
	p.text("space", c.SpaceID)
	p.text("command id", c.CommandID)
	p.textUnless("request id", c.RequestID, c.CommandID)
	p.integer("version", c.Version)
	p.time(c.CreateTime)
	if len(c.Events) == 0 {
		p.fail("events", es.Invalid("commit has no events"))
	}
	p.array(len(c.Events))
	a := t.of(c.Aggregate.Type)
	for i := range c.Events {
		n, err := a.eventNames(&c.Events[i])
		if err != nil {
			p.fail("body", err)
		}
		p.array(eventMembers)
		p.text("event id", c.Events[i].ID)
		p.text("event name", n.Name)
		p.textUnless("event revision", n.Revision, es.DefaultRevision)
		p.textUnless("body type", n.BodyType, n.Name)
		p.body("body", c.Events[i].Body)
	}
}

// DecodeCommit implements [es.Codec]. Where upcasters drop all events, the commit has none.
func (m *MessagePackCodec) DecodeCommit(data []byte) (es.Commit, error) {
	var u unpacker
	u.document(data, kindCommit)
	extra := u.members(commitMembers)
	c := u.commit(m.tables)
	u.end(extra)
	if u.err != nil {
		return es.Commit{}, fmt.Errorf("commit: %w", u.err)
	}
	return c, nil
}

func (u *unpacker) commit(t tables) es.Commit {
	c := es.Commit{
		ID: u.text(), Aggregate: u.aggregate(t), Header: u.header(), OwnerID: u.text(), SpaceID: u.text(), CommandID: u.text(),
	}
	c.RequestID = u.textOr(c.CommandID)
	c.Version, c.CreateTime = u.integer(), u.time()
	n := u.list()
	if n == 0 {
		u.fail("no events")
	}
	a := t.of(c.Aggregate.Type)
	c.Events = make([]es.Event, 0, min(n, 64))
	for ; n > 0 && u.err == nil; n-- {
		c.Events = u.appendEvent(c.Events, a)
	}
	c.Derive()
	return c
}

// appendEvent adds what the next event is today: itself, or what upcasters make of it.
func (u *unpacker) appendEvent(events []es.Event, a *aggregate) []es.Event {
	extra := u.members(eventMembers)
	e := es.Event{ID: u.text(), Name: u.text(), Revision: u.textOr(es.DefaultRevision)}
	e.BodyType = u.textOr(e.Name)
	raw := u.value()
	for ; extra > 0 && u.err == nil; extra-- {
		u.walk(maxNesting)
	}
	if u.err == nil && (e.Name == "" || e.Revision == "") {
		u.fail("event without name or revision")
	}
	if u.err != nil {
		return events
	}
	if a.upcaster(e.Name, e.Revision) != nil {
		var body es.Raw
		if body, u.err = toJSON(raw); u.err == nil {
			events, u.err = a.appendUpcast(events, e, body)
		}
		return events
	}
	u.err = a.decodeEvent(&e, a.eventNamed(e.Name, e.Revision), stored{b: raw, packed: true})
	return append(events, e)
}

// EncodeStateEvent implements [es.Codec].
func (m *MessagePackCodec) EncodeStateEvent(e *es.StateEvent) ([]byte, error) {
	p := newPacker(kindStateEvent)
	p.array(stateEventMembers)
	p.commit(m.tables, &e.Commit)
	p.text("first operator", e.FirstOperator)
	p.time(e.FirstEventTime)
	p.tags(e.Tags)
	p.flag(e.Deleted)
	p.body("state", e.State)
	return p.done("state event")
}

// DecodeStateEvent implements [es.Codec]. With a pointer given, the result's State is
// what it points to then.
func (m *MessagePackCodec) DecodeStateEvent(data []byte, state any) (es.StateEvent, error) {
	var u unpacker
	u.document(data, kindStateEvent)
	extra := u.members(stateEventMembers)
	e := es.StateEvent{
		Commit: u.commit(m.tables), FirstOperator: u.text(), FirstEventTime: u.time(), Tags: u.tags(), Deleted: u.flag(),
	}
	raw := u.value()
	u.end(extra)
	if u.err == nil {
		e.State, u.err = stateOf(state, stored{b: raw, packed: true})
	}
	if u.err != nil {
		return es.StateEvent{}, fmt.Errorf("state event: %w", u.err)
	}
	return e, nil
}
