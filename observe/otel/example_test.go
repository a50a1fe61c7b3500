package otel_test

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/observe/otel"
	"github.com/headwater-go/headwater/wire"
)

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{})
	defer func() { _ = rdb.Close() }()
	telemetry, err := otel.New(otel.Config{Redis: rdb}) // the global providers
	if err != nil {
		panic(err)
	}
	defer func() { _ = telemetry.Close() }()
	bus := commandbus.New(rdb, wire.JSON(es.Types{Aggregate: es.AggregateType{Context: "bank", Name: "account"}}))
	bus.Observer, bus.Middleware = telemetry, []es.Middleware{telemetry.Middleware}
	sender := telemetry.Sender(bus) // send through it
	fmt.Println(sender != nil)
	// Output: true
}
