package migrate

import (
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
)

// A manifest is lines of JSON: a head, a line for each key, lines of problems that belong
// to no single key, and an end with the checksum of all lines before it.
type line struct {
	Head    *head    `json:"manifest,omitempty"`
	Record  *record  `json:"record,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
	End     *end     `json:"end,omitempty"`
}

const manifestFormat = 1

// head says what was audited, and how.
type head struct {
	Format int `json:"format"`
	// Source is the place, as the server names it.
	Source place `json:"source"`
	// Types, Accept and Names are the audit's knobs; Names by their checksum.
	Types  []es.AggregateType `json:"types,omitempty"`
	Accept []Code             `json:"accept,omitempty"`
	Names  string             `json:"names,omitempty"`
}

// record is one key of an older layout. Where Kind is "", the key is not touched.
type record struct {
	Key  string      `json:"key"`
	Kind legacy.Kind `json:"kind,omitempty"`
	Era  string      `json:"era,omitempty"`
	// Stem is the aggregate type as the layout writes it.
	Stem string `json:"stem,omitempty"`
	// Aggregate is whose the key is, by the JSON in it.
	Aggregate *identity `json:"aggregate,omitempty"`
	// Count are the members or fields, Bytes their length, Sum their checksum.
	Count int64  `json:"count,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	Sum   string `json:"sum,omitempty"`
	// Requests counts the request ids of the commits, RequestSum is their checksum.
	Requests   int64  `json:"requests,omitempty"`
	RequestSum string `json:"request_sum,omitempty"`
	// Name is that of a reservation's set, by the operator's word.
	Name string `json:"name,omitempty"`
	// Target is the canonical key, "" where the key is only removed at the end.
	Target string `json:"target,omitempty"`
	// Left says that the key is kept out of the copy by the operator's word.
	Left     bool      `json:"left,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
	// Beside is the set of requests that belongs to a stream alone: both are one line, so
	// that an audit that is cut has written both or neither.
	Beside *record `json:"beside,omitempty"`

	version int // of a snapshot, while it is audited
}

// identity is an es.AggregateID with short names in JSON.
type identity struct {
	Context string `json:"context"`
	Alias   string `json:"alias,omitempty"`
	Name    string `json:"name"`
	Tenant  string `json:"tenant"`
	ID      string `json:"id"`
}

func identityOf(id es.AggregateID) *identity {
	return &identity{Context: id.Type.Context, Alias: id.Type.Alias, Name: id.Type.Name, Tenant: id.Tenant, ID: id.ID}
}

func (i *identity) id() es.AggregateID {
	return es.AggregateID{Type: es.AggregateType{Context: i.Context, Alias: i.Alias, Name: i.Name}, Tenant: i.Tenant, ID: i.ID}
}

// sentinel reports a key whose presence keeps a service from starting.
func (r *record) sentinel() bool { return r.Kind == legacy.SharedRequests || r.Kind == legacy.IDs }

// end closes a manifest.
type end struct {
	Checksum string `json:"checksum"`
	Report   Report `json:"report"`
}
