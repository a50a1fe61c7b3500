package recovery_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/recovery"
)

func ExampleNewGroup() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close() //nolint:errcheck // the example ends
	const topic = "bank-service.account:event"
	rdb.XGroupCreateMkStream(ctx, topic, "balances", "0")
	rdb.XAdd(ctx, &redis.XAddArgs{Stream: topic, ID: "7-1", Values: []string{"msg", "{}"}})

	first := recovery.NewGroup(rdb, topic, "balances", "first")
	err = first.Renew(ctx) // before it reads
	rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "balances", Consumer: "first", Streams: []string{topic, ">"}})
	fmt.Println(err, first.GiveBack(ctx, topic, []string{"7-1"}), first.Leave(ctx))

	second := recovery.NewGroup(rdb, topic, "balances", "second")
	err = second.Renew(ctx)
	holdsNothing := func(string) bool { return false }
	swept, sweepErr := second.Sweep(ctx, topic, 100, holdsNothing, func(entries []recovery.Entry) {
		fmt.Println(entries[0].ID, entries[0].Fields, "was", entries[0].Owner+"'s")
	})
	fmt.Println(err, swept.Claimed, sweepErr)
	lost, err := second.Ack(ctx, topic, []string{"7-1"})
	fmt.Println(lost, err)
	// Output:
	// <nil> <nil> <nil>
	// 7-1 [msg {}] was first's
	// <nil> 1 <nil>
	// [] <nil>
}
