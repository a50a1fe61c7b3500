package snapshot_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/snapshot"
	"github.com/headwater-go/headwater/wire"
)

// Account is the state of an account.
type Account struct {
	Owner   string `json:"owner"`
	Balance int64  `json:"balance"`
}

func ExampleNew() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close() //nolint:errcheck // the example ends here

	accounts := es.AggregateType{Context: "bank-service", Name: "account"}
	snapshots := snapshot.New[Account](rdb, wire.JSON(es.Types{Aggregate: accounts}))

	ctx := context.Background()
	id := accounts.ID("acc-1")
	for _, version := range []int{50, 30} { // an older one never replaces a newer one
		if err := snapshots.Save(ctx, es.Snapshot[Account]{
			Meta:  es.Meta{Aggregate: id, Version: version},
			State: Account{Owner: "ann", Balance: int64(version) * 10},
		}); err != nil {
			panic(err)
		}
	}
	account, err := snapshots.Load(ctx, id)
	fmt.Println(account.Version, account.State.Owner, account.State.Balance, err)
	// Output: 50 ann 500 <nil>
}

func ExampleEveryVersions() {
	strategy := snapshot.EveryVersions(100)
	fmt.Println(strategy(es.Meta{Version: 100}, es.Meta{Version: 199}), strategy(es.Meta{Version: 100}, es.Meta{Version: 200}))
	// Output: false true
}

func ExampleEveryCommit() {
	fmt.Println(snapshot.EveryCommit()(es.Meta{Version: 1}, es.Meta{Version: 2}))
	// Output: true
}

func ExampleOlderThan() {
	strategy := snapshot.OlderThan(24 * time.Hour)
	monday := time.Date(2024, 1, 1, 9, 0, 0, 0, time.UTC)
	saved := es.Meta{Version: 10, EventTime: monday}
	fmt.Println(strategy(saved, es.Meta{Version: 300, EventTime: monday.Add(8 * time.Hour)}))
	fmt.Println(strategy(saved, es.Meta{Version: 301, EventTime: monday.Add(24 * time.Hour)}))
	// Output:
	// false
	// true
}

func ExampleOff() {
	fmt.Println(snapshot.Off()(es.Meta{}, es.Meta{Version: 1_000_000}))
	// Output: false
}
