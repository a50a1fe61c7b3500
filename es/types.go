package es

// Types is the table of one aggregate's messages, from which a codec learns which Go
// type a stored name stands for. It is a value: there is no registry.
type Types struct {
	Aggregate AggregateType
	Commands  []Type
	Events    []Type
	// Upcasters lift old events to the shape of today before they are decoded.
	Upcasters []Upcaster
}

// Type ties one Go type to the name it is stored under.
type Type struct {
	// Body is a zero value of the type: a [CommandBody] or an [EventBody].
	Body any
	// Name is the stored name. Defaults to the body's own name.
	Name string
	// Revision of an event's shape. Defaults to the body's own, or [DefaultRevision].
	Revision string
	// BodyType is Wow's JVM class name, needed wherever a Kotlin node reads the
	// message. Defaults to Name.
	BodyType string
	// Former entries are read and never written: the type has another, current entry.
	Former bool
}

// Upcaster lifts the events of one name and revision, before they are decoded. Its
// results go through the upcasters again, until none fits.
type Upcaster struct {
	// Event is the stored name that it takes.
	Event string
	// Revision that it takes; "" = every one.
	Revision string
	// Up returns what stands for the event today: itself changed, several events, or
	// none to drop it. It must be pure, and must not change the body it was given.
	Up func(RawEvent) ([]RawEvent, error)
}

// RawEvent is an event before its body is decoded. Body is JSON, whatever the codec.
type RawEvent struct {
	Name     string
	Revision string
	BodyType string
	Body     Raw
}

// Codec writes and reads messages. Implementations are safe for concurrent use. What
// cannot be encoded is an [ErrInvalid] or [ErrTooLarge]; bytes that cannot be read are
// an [ErrCorrupt], an [ErrUnknownType], or an [ErrWrongFormat] where another codec
// wrote them. What is decoded may share the memory of data, which must stay as it is.
type Codec interface {
	EncodeCommand(c *Command) ([]byte, error)
	DecodeCommand(data []byte) (Command, error)
	EncodeCommit(c *Commit) ([]byte, error)
	DecodeCommit(data []byte) (Commit, error)
	EncodeStateEvent(e *StateEvent) ([]byte, error)
	// DecodeStateEvent decodes the state into the pointer state, or leaves it [Raw]
	// in the result where state is nil.
	DecodeStateEvent(data []byte, state any) (StateEvent, error)
	EncodeSnapshot(m *Meta, state any) ([]byte, error)
	// DecodeSnapshot decodes the state into the pointer state, which may be nil.
	DecodeSnapshot(data []byte, state any) (Meta, error)
	// EncodeValue and DecodeValue are for values of prepare keys.
	EncodeValue(v any) ([]byte, error)
	DecodeValue(data []byte, v any) error
}
