package wire

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/headwater-go/headwater/es"
)

// MessagePackCodec writes documents that only Headwater reads, smaller and faster than
// JSON. Layout: the bytes C1 'H' 'W', a byte for the kind of document ('c' command, 'e'
// commit, 's' state event, 'S' snapshot, 'v' value), for a snapshot ten decimal digits
// of its version, so that a script can read it from bytes 5 to 14 (counted from 1), and
// a MessagePack list of the members.
//
// Struct tags are msgpack, else json. A type that only knows how to write itself as
// JSON is refused where it would lose fields. Texts in bodies must be valid UTF-8, and
// numbers finite, as in JSON. Integers in an any come back as int64 or uint64, times in
// the local zone. An integer that no longer fits its field is cut, as a conversion in Go
// cuts it, where JSON reports it: never make a field narrower without an upcaster. A raw
// body may be MessagePack or JSON; each is kept as it is. The extension 'J' is taken.
type MessagePackCodec struct{ tables tables }

var _ es.Codec = (*MessagePackCodec)(nil)

// MessagePack is the codec for services without Wow. It panics on a mistake in types.
func MessagePack(types ...es.Types) *MessagePackCodec {
	m := &MessagePackCodec{newTables(types)}
	for _, a := range slices.Concat(slices.Collect(maps.Values(m.tables))...) {
		for _, entries := range []map[reflect.Type]*entry{a.commands, a.events} {
			for t := range entries {
				if err := packable(t); err != nil {
					panic(fmt.Sprintf("wire: types of %s: %v", a, err))
				}
			}
		}
	}
	return m
}

const commandMembers = 15

// Bits of a command's flags.
const (
	flagCreate = 1 << iota
	flagAllowCreate
	flagVoid
)

// EncodeCommand implements [es.Codec]. A typed body must be in the aggregate's table.
func (m *MessagePackCodec) EncodeCommand(c *es.Command) ([]byte, error) {
	p := newPacker(kindCommand)
	name, bodyType, err := m.tables.commandNames(c)
	if err != nil {
		p.fail("body", err)
	}
	p.array(commandMembers)
	p.text("id", c.ID)
	p.aggregate(c.Aggregate)
	p.text("name", name)
	p.header(c.Header)
	p.text("owner", c.OwnerID)
	p.text("space", c.SpaceID)
	p.textUnless("request id", c.RequestID, c.ID)
	if c.Expected == nil {
		p.null()
	} else {
		p.integer("expected version", *c.Expected)
	}
	p.int64(bit(c.Create, flagCreate) | bit(c.AllowCreate, flagAllowCreate) | bit(c.Void, flagVoid))
	p.textUnless("body type", bodyType, name)
	p.body("body", c.Body)
	p.time(c.CreateTime)
	return p.done("command")
}

func bit(set bool, flag int64) int64 {
	if set {
		return flag
	}
	return 0
}

// DecodeCommand implements [es.Codec].
func (m *MessagePackCodec) DecodeCommand(data []byte) (es.Command, error) {
	var u unpacker
	u.document(data, kindCommand)
	extra := u.members(commandMembers)
	c := es.Command{
		ID: u.text(), Aggregate: u.aggregate(m.tables), Name: u.text(), Header: u.header(), OwnerID: u.text(), SpaceID: u.text(),
	}
	c.RequestID = u.textOr(c.ID)
	if !u.isNil() {
		c.Expected = new(u.integer())
	}
	flags := u.int64()
	c.Create, c.AllowCreate, c.Void = flags&flagCreate != 0, flags&flagAllowCreate != 0, flags&flagVoid != 0
	c.BodyType = u.textOr(c.Name)
	body := u.value()
	c.CreateTime = u.time()
	u.end(extra)
	if u.err == nil {
		u.err = m.tables.decodeCommandBody(&c, stored{b: body, packed: true})
	}
	if u.err != nil {
		return es.Command{}, fmt.Errorf("command: %w", u.err)
	}
	return c, nil
}

// EncodeSnapshot implements [es.Codec].
func (m *MessagePackCodec) EncodeSnapshot(meta *es.Meta, state any) ([]byte, error) {
	p := newPacker(kindSnapshot)
	if meta.Version < 0 || meta.Version > es.MaxVersion {
		p.fail("version", es.Invalid("%d is not between 0 and %d", meta.Version, es.MaxVersion))
	}
	p.lit(fmt.Sprintf("%0*d", versionDigits, meta.Version))
	p.array(snapshotMembers)
	p.aggregate(meta.Aggregate)
	p.text("owner", meta.OwnerID)
	p.text("space", meta.SpaceID)
	p.text("event id", meta.EventID)
	p.text("first operator", meta.FirstOperator)
	p.text("operator", meta.Operator)
	p.time(meta.FirstEventTime)
	p.time(meta.EventTime)
	p.time(meta.SnapshotTime)
	p.tags(meta.Tags)
	p.flag(meta.Deleted)
	p.text("schema", meta.Schema)
	p.body("state", state)
	return p.done("snapshot")
}

const snapshotMembers = 16

// DecodeSnapshot implements [es.Codec]. A snapshot of an aggregate without a table is
// an [es.ErrUnknownType].
func (m *MessagePackCodec) DecodeSnapshot(data []byte, state any) (es.Meta, error) {
	var u unpacker
	version := u.beginSnapshot(data)
	extra := u.members(snapshotMembers)
	meta := es.Meta{
		Version: version, Aggregate: u.aggregate(m.tables), OwnerID: u.text(), SpaceID: u.text(), EventID: u.text(),
		FirstOperator: u.text(), Operator: u.text(), FirstEventTime: u.time(), EventTime: u.time(), SnapshotTime: u.time(),
		Tags: u.tags(), Deleted: u.flag(), Schema: u.text(),
	}
	raw := u.value()
	u.end(extra)
	if u.err == nil {
		u.err = m.tables.knows(meta.Aggregate.Type)
	}
	if u.err == nil && state != nil {
		u.err = underState(decodePacked(raw, state))
	}
	if u.err != nil {
		return es.Meta{}, fmt.Errorf("snapshot: %w", u.err)
	}
	return meta, nil
}

// beginSnapshot reads the version at the head.
func (u *unpacker) beginSnapshot(data []byte) int {
	u.document(data, kindSnapshot)
	n, err := strconv.ParseUint(string(u.take(versionDigits)), 10, 31)
	if err != nil {
		u.fail("no version")
	}
	return int(n)
}

// EncodeValue implements [es.Codec]. Equal values of maps with text keys, and of all
// else that holds no map, are equal bytes.
func (m *MessagePackCodec) EncodeValue(v any) ([]byte, error) {
	p := newPacker(kindValue)
	p.body("value", v)
	return p.done("prepare key")
}

// DecodeValue implements [es.Codec].
func (m *MessagePackCodec) DecodeValue(data []byte, v any) error {
	var u unpacker
	u.document(data, kindValue)
	raw := u.value()
	u.end(0)
	if u.err == nil {
		u.err = decodePacked(raw, v)
	}
	if u.err != nil {
		return fmt.Errorf("prepare key: %w", u.err)
	}
	return nil
}
