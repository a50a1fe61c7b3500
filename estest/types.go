package estest

import (
	"crypto/rand"
	"encoding"
	"errors"
	"strings"

	"github.com/headwater-go/headwater/es"
)

// Change is the command of the suites' aggregates.
type Change struct {
	Data   string            `json:"data"`
	Number int64             `json:"number"`
	Labels map[string]string `json:"labels"`
	Tree   any               `json:"tree"`
}

// CommandName implements [es.CommandBody].
func (Change) CommandName() string { return "change" }

// Created is the first event of the suites' aggregates.
type Created struct {
	Data string `json:"data"`
}

// EventName implements [es.EventBody].
func (Created) EventName() string { return "created" }

// Changed carries one value of each kind that has been damaged on the way somewhere.
type Changed struct {
	Data   string            `json:"data"`
	Number int64             `json:"number"`
	Items  []string          `json:"items"`
	Labels map[string]string `json:"labels"`
}

// EventName implements [es.EventBody].
func (Changed) EventName() string { return "changed" }

// Measured carries a float.
type Measured struct {
	Value float64 `json:"value"`
}

// EventName implements [es.EventBody].
func (Measured) EventName() string { return "measured" }

// Nested carries anything: lists in lists, or what cannot be encoded at all.
type Nested struct {
	Tree any `json:"tree"`
}

// EventName implements [es.EventBody].
func (Nested) EventName() string { return "nested" }

// TypesOf is the table of the suites' messages for an aggregate type, which a driver
// builds its codec with.
func TypesOf(t es.AggregateType) es.Types {
	return es.Types{Aggregate: t, Commands: []es.Type{{Body: Change{}, BodyType: "estest.change"}}, Events: []es.Type{
		{Body: Created{}, BodyType: bodyType(Created{})},
		{Body: Changed{}, BodyType: bodyType(Changed{})},
		{Body: Measured{}, BodyType: bodyType(Measured{})},
		{Body: Nested{}, BodyType: bodyType(Nested{})},
	}}
}

func bodyType(b es.EventBody) string { return "estest." + b.EventName() }

// State is the state that the snapshot suite saves.
type State struct {
	Data   string            `json:"data"`
	Number int64             `json:"number"`
	Items  []string          `json:"items"`
	Labels map[string]string `json:"labels"`
	Ratio  float64           `json:"ratio"`
	Seal   Seal              `json:"seal"`
}

// Seal is text that can be written and not read where it is [Broken]: a snapshot that
// a program of today cannot read.
type Seal string

// Broken is the seal that cannot be read.
const Broken Seal = "broken"

var _ encoding.TextUnmarshaler = (*Seal)(nil)

// MarshalText implements [encoding.TextMarshaler].
func (s Seal) MarshalText() ([]byte, error) { return []byte(s), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Seal) UnmarshalText(text []byte) error {
	if Seal(text) == Broken {
		return errors.New("the seal is broken")
	}
	*s = Seal(text)
	return nil
}

// Holder is the object that the suite of prepare keys reserves keys for.
type Holder struct {
	Value       string `json:"value"`
	PrepareTime int64  `json:"prepareTime"`
}

// newType is an aggregate type that no other test has, so that nothing is flushed.
func newType() es.AggregateType {
	return es.AggregateType{Context: "estest", Name: "t" + strings.ToLower(rand.Text()[:12])}
}
