package wire

import (
	"fmt"
	"reflect"

	"github.com/headwater-go/headwater/es"
)

// JSONCodec writes and reads the documents of Wow's canonical v2 layout.
type JSONCodec struct{ tables tables }

var _ es.Codec = (*JSONCodec)(nil)

// JSON is the codec that shares streams, stores and snapshots with Wow. It panics on a
// mistake in types.
func JSON(types ...es.Types) *JSONCodec { return &JSONCodec{newTables(types)} }

// EncodeCommand implements [es.Codec]. A typed body must be in the aggregate's table.
func (j *JSONCodec) EncodeCommand(c *es.Command) ([]byte, error) {
	w := newWriter()
	name, bodyType, err := j.tables.commandNames(c)
	if err != nil {
		w.fail("body", err)
	}
	w.text(`{"id":`, c.ID)
	w.text(`,"contextName":`, c.Aggregate.Type.Context)
	w.text(`,"aggregateName":`, c.Aggregate.Type.Name)
	w.text(`,"name":`, name)
	w.header(`,"header":`, c.Header)
	w.text(`,"tenantId":`, c.Aggregate.Tenant)
	w.text(`,"aggregateId":`, c.Aggregate.ID)
	w.text(`,"ownerId":`, c.OwnerID)
	w.text(`,"spaceId":`, c.SpaceID)
	w.text(`,"requestId":`, c.RequestID)
	if c.Expected != nil {
		w.integer(`,"aggregateVersion":`, *c.Expected)
	}
	w.flag(`,"isCreate":`, c.Create)
	w.flag(`,"isVoid":`, c.Void)
	w.flag(`,"allowCreate":`, c.AllowCreate)
	w.text(`,"bodyType":`, bodyType)
	w.body(`,"body":`, c.Body)
	w.time(`,"createTime":`, c.CreateTime)
	w.lit("}")
	return w.done("command")
}

// DecodeCommand implements [es.Codec].
func (j *JSONCodec) DecodeCommand(data []byte) (es.Command, error) {
	r := newReader()
	defer r.release()
	if err := r.read(data, commandOrder, false); err != nil {
		return es.Command{}, fmt.Errorf("command: %w", err)
	}
	c := es.Command{
		ID: r.str(fieldID), Aggregate: r.aggregateID(j.tables), Name: r.str(fieldName), Header: r.headers(),
		OwnerID: r.optional(fieldOwner), SpaceID: r.optional(fieldSpace), RequestID: r.str(fieldRequest),
		Create: r.flag(fieldCreate), Void: r.optionalFlag(fieldVoid), AllowCreate: r.optionalFlag(fieldAllowCreate),
		BodyType: r.str(fieldBodyType), CreateTime: r.time(fieldCreateTime),
	}
	if r.fields[fieldExpected].kind != absent {
		c.Expected = new(r.integer(fieldExpected))
	}
	body := r.stored(fieldBody, r.fields[fieldBody])
	if r.err == nil {
		r.err = j.tables.decodeCommandBody(&c, body)
	}
	if r.err != nil {
		return es.Command{}, fmt.Errorf("command: %w", r.err)
	}
	return c, nil
}

// EncodeCommit implements [es.Codec]. A typed body must be in the aggregate's table.
func (j *JSONCodec) EncodeCommit(c *es.Commit) ([]byte, error) {
	w := newWriter()
	w.commitHead(c)
	w.events(j.tables, c)
	return w.done("commit")
}

// DecodeCommit implements [es.Codec]. Where upcasters drop all events, the commit has none.
func (j *JSONCodec) DecodeCommit(data []byte) (c es.Commit, err error) {
	if j.tables.canonical(data, &c) {
		return c, nil
	}
	r := newReader()
	defer r.release()
	if err := r.read(data, commitOrder, true); err != nil {
		return es.Commit{}, fmt.Errorf("commit: %w", err)
	}
	if c = r.commit(j.tables); r.err != nil {
		return es.Commit{}, fmt.Errorf("commit: %w", r.err)
	}
	return c, nil
}

// EncodeStateEvent implements [es.Codec]. The state must be written as an object.
func (j *JSONCodec) EncodeStateEvent(e *es.StateEvent) ([]byte, error) {
	w := newWriter()
	w.commitHead(&e.Commit)
	w.text(`,"firstOperator":`, e.FirstOperator)
	w.time(`,"firstEventTime":`, e.FirstEventTime)
	w.object(`,"state":`, e.State)
	w.tags(`,"tags":`, e.Tags)
	w.flag(`,"deleted":`, e.Deleted)
	w.events(j.tables, &e.Commit)
	return w.done("state event")
}

// DecodeStateEvent implements [es.Codec]. With a pointer given, the result's State is
// what it points to then.
func (j *JSONCodec) DecodeStateEvent(data []byte, state any) (es.StateEvent, error) {
	r := newReader()
	defer r.release()
	if err := r.read(data, stateOrder, true); err != nil {
		return es.StateEvent{}, fmt.Errorf("state event: %w", err)
	}
	e := es.StateEvent{
		FirstOperator: r.optional(fieldFirstOperator), FirstEventTime: r.optionalTime(fieldFirstEventTime),
		Tags: r.tags(), Deleted: r.flag(fieldDeleted),
	}
	t := r.fields[fieldState]
	if t.kind != object {
		r.blame(fieldState, t, "an object")
	}
	e.Commit = r.commit(j.tables)
	if r.err == nil {
		e.State, r.err = stateOf(state, r.stored(fieldState, t))
	}
	if r.err != nil {
		return es.StateEvent{}, fmt.Errorf("state event: %w", r.err)
	}
	return e, nil
}

// stateOf decodes into the pointer state and is what it points to then, or the raw state
// where state is nil.
func stateOf(state any, s stored) (any, error) {
	if state == nil {
		raw, err := s.raw()
		return raw, underState(err)
	}
	if err := s.decode(state, bodyOptions); err != nil {
		return nil, underState(err)
	}
	return reflect.ValueOf(state).Elem().Interface(), nil
}

func underState(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fieldNames[fieldState], err)
}
