package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/headwater-go/headwater/es"
)

// note is a Kotlin String that may not be missing or null, and takes numbers: what a
// body makes of its members is its own affair, not the envelope's.
type note string

func (n *note) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		*n = note(v)
	case float64:
		*n = note(b)
	default:
		return fmt.Errorf("%T for a text", v)
	}
	return nil
}

// changeNote wants its property, as the Kotlin class does.
type changeNote struct {
	Note *note `json:"note"`
}

func (changeNote) CommandName() string { return "change_note" }

func (c *changeNote) UnmarshalJSON(b []byte) (err error) {
	c.Note, err = noteOf(b)
	return err
}

type noteChanged struct {
	Note *note `json:"note"`
}

func (noteChanged) EventName() string { return "note_changed" }

func (c *noteChanged) UnmarshalJSON(b []byte) (err error) {
	c.Note, err = noteOf(b)
	return err
}

func noteOf(b []byte) (*note, error) {
	var v struct {
		Note *note `json:"note"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	if v.Note == nil {
		return nil, errors.New("note is missing")
	}
	return v.Note, nil
}

type nested struct {
	X int `json:"x"`
}

func (nested) CommandName() string { return "nested_command" }

type setRich struct {
	Rich json.RawMessage `json:"rich"`
}

func (setRich) CommandName() string { return "set_rich" }

type orderRepriced struct {
	Price float64 `json:"price"`
}

func (orderRepriced) EventName() string     { return "order_repriced" }
func (orderRepriced) EventRevision() string { return "1.2.0" }

// orderState is Kotlin's: the id is wanted, the rest has defaults.
type orderState struct {
	ID    *string         `json:"id"`
	Note  *string         `json:"note"`
	Price json.Number     `json:"price"`
	Qty   int             `json:"qty"`
	Rich  json.RawMessage `json:"rich"`
	SKU   string          `json:"sku"`
}

func (s *orderState) UnmarshalJSON(b []byte) error {
	type plain orderState
	s.Price, s.Rich = "0.0", json.RawMessage("null")
	if err := json.Unmarshal(b, (*plain)(s)); err != nil {
		return err
	}
	if s.ID == nil {
		return errors.New("id is missing")
	}
	return nil
}

func orders() es.Types {
	return es.Types{
		Aggregate: es.AggregateType{Context: "order-service", Name: "order"},
		Commands: []es.Type{
			{Body: changeNote{}, BodyType: "com.acme.order.ChangeNote"},
			{Body: nested{}, BodyType: "com.acme.order.Outer$NestedCommand"},
			{Body: setRich{}, BodyType: "com.acme.order.SetRich"},
		},
		Events: []es.Type{
			{Body: noteChanged{}, BodyType: "com.acme.order.NoteChanged"},
			{Body: orderRepriced{}, BodyType: "com.acme.order.OrderRepriced"},
		},
	}
}

func stock() es.Types {
	return es.Types{Aggregate: es.AggregateType{Context: "inventory-service", Alias: "inv", Name: "stock_item"}}
}
