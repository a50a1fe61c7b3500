package wire_test

import (
	"fmt"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

type OrderPlaced struct {
	SKU string `json:"sku"`
	Qty int    `json:"qty"`
}

func (OrderPlaced) EventName() string { return "order_placed" }

var orderType = es.AggregateType{Context: "order-service", Alias: "ord", Name: "order"}

var orderTypes = es.Types{
	Aggregate: orderType,
	Events:    []es.Type{{Body: OrderPlaced{}, BodyType: "com.acme.order.OrderPlaced"}},
}

func exampleCommit() es.Commit {
	return es.Commit{
		ID: "c-1", Aggregate: orderType.ID("order-1"), CommandID: "cmd-1", RequestID: "req-1", Version: 1,
		CreateTime: time.UnixMilli(1700000000000), Events: []es.Event{es.NewEvent("e-1", OrderPlaced{"A1", 2})},
	}
}

func ExampleJSON() {
	codec := wire.JSON(orderTypes)
	commit := exampleCommit()
	doc, err := codec.EncodeCommit(&commit)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(doc))

	back, err := codec.DecodeCommit(doc)
	if err != nil {
		panic(err)
	}
	if e, ok := back.Events[0].Body.(OrderPlaced); ok {
		fmt.Println(e.Qty, "of", e.SKU)
	}
	// Output:
	// {"id":"c-1","contextName":"order-service","aggregateName":"order","header":{},"aggregateId":"order-1","tenantId":"(0)","ownerId":"","spaceId":"","commandId":"cmd-1","requestId":"req-1","version":1,"body":[{"id":"e-1","name":"order_placed","revision":"0.0.1","bodyType":"com.acme.order.OrderPlaced","body":{"sku":"A1","qty":2}}],"createTime":1700000000000}
	// 2 of A1
}

func ExampleMessagePack() {
	codec := wire.MessagePack(orderTypes)
	doc, err := codec.EncodeSnapshot(&es.Meta{Aggregate: orderType.ID("order-1"), Version: 42}, OrderPlaced{"A1", 2})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%q\n", doc[:14]) // the version can be read without MessagePack

	var state OrderPlaced
	meta, err := codec.DecodeSnapshot(doc, &state)
	if err != nil {
		panic(err)
	}
	fmt.Println("version", meta.Version, state)
	// Output:
	// "\xc1HWS0000000042"
	// version 42 {A1 2}
}
