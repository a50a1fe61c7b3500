package replay

import (
	"fmt"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
)

// activity is what an event of the log asks of each kind of object that it names; nil
// = it names none of them.
type activity struct {
	order, item, parcel func(Entry) es.CommandBody
}

var activities = map[string]activity{
	"place order": {
		order: func(e Entry) es.CommandBody { return order.Place{Items: e.Items, Price: e.Price} },
		item:  func(e Entry) es.CommandBody { return item.Place{Order: e.Order} },
	},
	"confirm order":     {order: always(order.Confirm{})},
	"payment reminder":  {order: always(order.Remind{})},
	"pay order":         {order: func(e Entry) es.CommandBody { return order.Pay{Amount: e.Price} }},
	"item out of stock": {item: always(item.RunOut{})},
	"reorder item":      {item: always(item.Reorder{})},
	"pick item":         {item: always(item.Pick{})},
	"create package": {
		item:   func(e Entry) es.CommandBody { return item.Pack{Package: e.Package} },
		parcel: func(e Entry) es.CommandBody { return parcel.Create{Items: e.Items, Grams: e.Grams} },
	},
	"send package":      {parcel: always(parcel.Send{})},
	"failed delivery":   {parcel: always(parcel.Fail{})},
	"package delivered": {parcel: always(parcel.Deliver{})},
}

func always(body es.CommandBody) func(Entry) es.CommandBody {
	return func(Entry) es.CommandBody { return body }
}

// check reports an activity that nobody knows, and one that names other objects than
// it should.
func (e Entry) check() error {
	a, ok := activities[e.Activity]
	if !ok {
		return fmt.Errorf("unknown activity %q", e.Activity)
	}
	for _, object := range []struct {
		what          string
		named, wanted bool
	}{
		{"an order", e.Order != "", a.order != nil},
		{"items", len(e.Items) > 0, a.item != nil},
		{"a package", e.Package != "", a.parcel != nil},
	} {
		if object.named != object.wanted {
			return fmt.Errorf("%q must name %s: %t; it does: %t", e.Activity, object.what, object.wanted, object.named)
		}
	}
	return nil
}

// Commands are the commands that the entries stand for, in their order: one for each
// object that an entry names. Their request ids follow from the log, so that however
// often it is replayed, each is carried out once.
func Commands(entries []Entry) []es.Command {
	var commands []es.Command
	for _, e := range entries {
		add := func(id es.AggregateID, body es.CommandBody) {
			c := es.NewCommand(id, body)
			c.RequestID = e.ID + ":" + id.Type.Name + ":" + id.ID
			c.CreateTime = e.At
			commands = append(commands, c)
		}
		a := activities[e.Activity]
		if e.Order != "" {
			add(order.Type.ID(e.Order), a.order(e))
		}
		for _, id := range e.Items {
			add(item.Type.ID(id), a.item(e))
		}
		if e.Package != "" {
			add(parcel.Type.ID(e.Package), a.parcel(e))
		}
	}
	return commands
}
