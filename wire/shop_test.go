package wire_test

import (
	"testing"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// The shop is the domain of the tests that are not about Wow's vectors.

var cart = es.AggregateType{Context: "shop", Alias: "s", Name: "cart"}

type line struct {
	SKU   string `json:"sku"`
	Qty   int    `json:"qty"`
	Price int64  `json:"price"`
}

type place struct {
	Customer string `json:"customer"`
	Lines    []line `json:"lines"`
}

func (place) CommandName() string { return "place" }

type placed struct {
	OrderID  string            `json:"orderId"`
	Customer string            `json:"customer"`
	Lines    []line            `json:"lines"`
	Note     *string           `json:"note"`
	Labels   map[string]string `json:"labels,omitempty"`
	Total    int64             `json:"total"`
	Rate     float64           `json:"rate"`
	Express  bool              `json:"express"`
}

func (placed) EventName() string { return "placed" }

type paid struct {
	Cents int64 `json:"cents"`
}

func (paid) EventName() string     { return "paid" }
func (paid) EventRevision() string { return "2" }

type counted struct {
	N int `json:"n"`
}

func (*counted) EventName() string { return "counted" }

type cartState struct {
	Lines []line `json:"lines"`
	Open  bool   `json:"open"`
}

func carts() es.Types {
	return es.Types{
		Aggregate: cart,
		Commands:  []es.Type{{Body: place{}}},
		Events:    []es.Type{{Body: placed{}, BodyType: "shop.Placed"}, {Body: paid{}}, {Body: &counted{}}},
	}
}

// eachCodec runs a test for both codecs.
func eachCodec(t *testing.T, test func(t *testing.T, codec es.Codec), types ...es.Types) {
	t.Helper()
	if len(types) == 0 {
		types = []es.Types{carts()}
	}
	for name, codec := range map[string]es.Codec{"JSON": wire.JSON(types...), "MessagePack": wire.MessagePack(types...)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, codec)
		})
	}
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 7e6, time.UTC)

func somePlaced() placed {
	return placed{
		OrderID: "order-1", Customer: "customer-4711", Total: 14747, Rate: 0.19, Express: true,
		Lines: []line{{"A1", 2, 1999}, {"B22", 1, 4999}, {"C333", 7, 250}},
	}
}

func someCommit(bodies ...es.EventBody) es.Commit {
	c := es.Commit{
		ID: "commit-1", Aggregate: cart.ID("cart-1"), CommandID: "command-1", RequestID: "request-1", Version: 3, CreateTime: noon,
		Header: es.Header{{Key: "trace_id", Value: "command-1"}, {Key: "upstream_name", Value: "place"}}, OwnerID: "bob",
	}
	for _, b := range bodies {
		c.Events = append(c.Events, es.NewEvent("event-1", b))
	}
	return c
}

func someCommand(body es.CommandBody) es.Command {
	c := es.NewCommand(cart.ID("cart-1"), body)
	c.Complete(func() string { return "command-1" }, noon)
	return c
}
