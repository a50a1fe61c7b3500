package wire

import (
	"fmt"

	"github.com/headwater-go/headwater/es"
)

// EncodeSnapshot implements [es.Codec]. After Wow's members it writes the schema mark,
// where there is one; Wow skips it.
func (j *JSONCodec) EncodeSnapshot(m *es.Meta, state any) ([]byte, error) {
	w := newWriter()
	w.text(`{"contextName":`, m.Aggregate.Type.Context)
	w.text(`,"aggregateName":`, m.Aggregate.Type.Name)
	w.text(`,"aggregateId":`, m.Aggregate.ID)
	w.text(`,"tenantId":`, m.Aggregate.Tenant)
	w.text(`,"ownerId":`, m.OwnerID)
	w.text(`,"spaceId":`, m.SpaceID)
	w.integer(`,"version":`, m.Version)
	w.text(`,"eventId":`, m.EventID)
	w.text(`,"firstOperator":`, m.FirstOperator)
	w.text(`,"operator":`, m.Operator)
	w.time(`,"firstEventTime":`, m.FirstEventTime)
	w.time(`,"eventTime":`, m.EventTime)
	w.notNull(`,"state":`, state)
	w.time(`,"snapshotTime":`, m.SnapshotTime)
	w.tags(`,"tags":`, m.Tags)
	w.flag(`,"deleted":`, m.Deleted)
	if m.Schema != "" {
		w.text(`,"schema":`, m.Schema)
	}
	w.lit("}")
	return w.done("snapshot")
}

// DecodeSnapshot implements [es.Codec]. A snapshot of an aggregate without a table is
// an [es.ErrUnknownType].
func (j *JSONCodec) DecodeSnapshot(data []byte, state any) (es.Meta, error) {
	r := newReader()
	defer r.release()
	if err := r.read(data, snapshotOrder, false); err != nil {
		return es.Meta{}, fmt.Errorf("snapshot: %w", err)
	}
	m := es.Meta{
		Aggregate: r.aggregateID(j.tables), OwnerID: r.optional(fieldOwner), SpaceID: r.optional(fieldSpace),
		Version: r.integer(fieldVersion), EventID: r.optional(fieldEvent),
		FirstOperator: r.optional(fieldFirstOperator), Operator: r.optional(fieldOperator),
		FirstEventTime: r.optionalTime(fieldFirstEventTime), EventTime: r.optionalTime(fieldEventTime),
		SnapshotTime: r.time(fieldSnapshotTime), Tags: r.tags(), Deleted: r.flag(fieldDeleted), Schema: r.optional(fieldSchema),
	}
	body := r.stored(fieldState, r.fields[fieldState])
	if r.err == nil {
		r.err = j.tables.knows(m.Aggregate.Type)
	}
	if r.err == nil {
		_, r.err = stateOf(state, body)
	}
	if r.err != nil {
		return es.Meta{}, fmt.Errorf("snapshot: %w", r.err)
	}
	return m, nil
}
