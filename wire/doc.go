// Package wire is how messages are written: [JSON] in the bytes of the Kotlin
// framework Wow (canonical v2), [MessagePack] smaller, for services of our own.
//
// # Tables
//
// A codec is made from one [es.Types] for each aggregate it meets. A mistake in them
// panics at once. The built-in commands and events are known for every aggregate in a
// table. A body is read as exactly the Go type that its table entry shows: Placed{}
// gives Placed, &Placed{} gives *Placed. On writing, value and pointer are one.
//
// An event's type is found by name and revision, else by body type; what is found
// nowhere stays [es.Raw] and is written again unchanged. A command's type is found by
// body type, or by name where the sender had no body type of its own; an unknown one
// is an [es.ErrUnknownType].
//
// # Bodies
//
// Bodies and states follow the struct tags of encoding/json, with differences that
// keep data whole: keys are matched exactly, invalid UTF-8 and lone surrogates are
// refused rather than replaced, HTML is not escaped, and a number that lands in an any
// is a json.Number. Nil slices and maps are null, as in Wow. The last of two equal
// keys wins. A struct must not embed a type that has JSON methods of its own. A
// pointer to an [es.Raw] takes a state or value as it is stored.
//
// Floats are written in Go's form, which every reader reads the same;
// [JSONCodec.EncodeValue] writes Java's, since values are compared as bytes.
//
// The time 0 of a document is the zero [time.Time], and the other way round.
//
// # Upcasters
//
// Upcasters run before an event's type is looked up. Where one event becomes several,
// the first keeps the event's id, and the others add ".2", ".3" and so on to it. A
// thousand steps for one event are taken for a loop.
package wire
