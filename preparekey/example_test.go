package preparekey_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/preparekey"
	"github.com/headwater-go/headwater/wire"
)

func ExampleNew() {
	server, err := miniredis.Run() // your own Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close() //nolint:errcheck // the example ends here

	ctx := context.Background()
	usernames := preparekey.New[string](rdb, wire.JSON(), "username")
	first, err := usernames.Prepare(ctx, "alice", "user-1", 0)
	fmt.Println("user-1 has it:", first, err)
	second, err := usernames.Prepare(ctx, "alice", "user-2", 0)
	fmt.Println("user-2 has it:", second, err)
	owner, err := usernames.Get(ctx, "alice")
	fmt.Println("it belongs to:", owner, err)
	// Output:
	// user-1 has it: true <nil>
	// user-2 has it: false <nil>
	// it belongs to: user-1 <nil>
}

func ExampleUsing() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close() //nolint:errcheck // the example ends here

	ctx := context.Background()
	usernames := preparekey.New[string](rdb, wire.JSON(), "username")
	register := func(user string, send func(context.Context) error) {
		held, err := preparekey.Using(ctx, usernames, "alice", user, 0, send)
		fmt.Println(user, held, err)
	}
	register("user-1", func(context.Context) error { return fmt.Errorf("the command was refused") })
	register("user-2", func(context.Context) error { return nil })
	register("user-3", func(context.Context) error { return nil })
	// Output:
	// user-1 false the command was refused
	// user-2 true <nil>
	// user-3 false <nil>
}

func ExampleMove() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close() //nolint:errcheck // the example ends here

	ctx := context.Background()
	usernames := preparekey.New[string](rdb, wire.JSON(), "username")
	for name, user := range map[string]string{"alice": "user-1", "bob": "user-2"} {
		if _, err := usernames.Prepare(ctx, name, user, 0); err != nil {
			panic(err)
		}
	}
	for _, to := range []string{"bob", "alicia"} {
		moved, err := preparekey.Move(ctx, usernames, "alice", "user-1", to, "user-1", 0)
		fmt.Println("from alice to", to+":", moved, err)
	}
	_, err = usernames.Get(ctx, "alice")
	fmt.Println("alice is free:", errors.Is(err, es.ErrNotFound))
	// Output:
	// from alice to bob: false <nil>
	// from alice to alicia: true <nil>
	// alice is free: true
}
