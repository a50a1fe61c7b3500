package recovery_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

func ExampleNewDeadLetters() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close() //nolint:errcheck // the example ends
	const topic = "bank-service.account:event"
	bury(ctx, rdb, topic)

	letters := recovery.NewDeadLetters(rdb)
	filter := recovery.LetterFilter{Topics: []string{topic}, Group: "balances"}
	for letter, err := range letters.List(ctx, filter, recovery.Letter{}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(letter.Entry, letter.Reason, letter.Error, letter.Fields)
		_, err := letters.Replay(ctx, letter.Topic, letter.ID) // to its own group alone
		fmt.Println("replayed", err)
	}
	n, err := letters.Count(ctx, filter)
	fmt.Println(n, err)
	// Output:
	// 7-1 permanent no such account [msg {}]
	// replayed <nil>
	// 0 <nil>
}

// bury makes a dead letter, as a subscription does whose handler returned [es.Permanent].
func bury(ctx context.Context, rdb *redis.Client, topic string) {
	rdb.XGroupCreateMkStream(ctx, topic, "balances", "0")
	rdb.XAdd(ctx, &redis.XAddArgs{Stream: topic, ID: "7-1", Values: []string{"msg", "{}"}})
	group := recovery.NewGroup(rdb, topic, "balances", "first")
	err := group.Renew(ctx)
	rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "balances", Consumer: "first", Streams: []string{topic, ">"}})
	if err == nil {
		err = group.Bury(ctx, topic, "7-1", recovery.Letter{
			Reason: recovery.Permanent, Error: "no such account", Fields: recovery.Fields{"msg", "{}"},
		})
	}
	if err != nil {
		panic(err)
	}
}

func ExampleLeaseMachineID() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close() //nolint:errcheck // the example ends

	ctx, stop := context.WithCancel(context.Background())
	machine, err := recovery.LeaseMachineID(ctx, rdb, recovery.MachineOptions{From: 100, To: 100})
	if err != nil {
		panic(err)
	}
	kept := make(chan error, 1)
	go func() { kept <- machine.Keep(ctx) }() // where it returns an error, stop making ids
	ids, err := es.NewIDGenerator(machine.Number)
	if err != nil {
		panic(err)
	}
	id, err := es.ParseID(ids.New())
	fmt.Println(id.Machine, err, machine.Held())
	stop()
	fmt.Println(<-kept, machine.Held())
	// Output:
	// 100 <nil> true
	// <nil> false
}
