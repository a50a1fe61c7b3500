package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/wire"
)

// Deposited is what happened to an account.
type Deposited struct {
	Cents int64 `json:"cents"`
}

// EventName implements [es.EventBody].
func (Deposited) EventName() string { return "deposited" }

var accounts = es.AggregateType{Context: "bank-service", Name: "account"}

// deposit is a commit as a repository makes them: one for each command.
func deposit(id es.AggregateID, version int, cents int64) es.Commit {
	n := fmt.Sprint(version)
	return es.Commit{
		ID: "commit-" + n, Aggregate: id, CommandID: "command-" + n, RequestID: "request-" + n, Version: version,
		Events:     []es.Event{es.NewEvent("event-"+n, Deposited{cents})},
		CreateTime: time.Date(2026, 11, version, 12, 0, 0, 0, time.UTC),
	}
}

// openAccounts is a store on a server that ends with the example; any Redis will do.
func openAccounts() (store *eventstore.Store, closeAll func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	types := es.Types{Aggregate: accounts, Events: []es.Type{{Body: Deposited{}, BodyType: "com.acme.bank.Deposited"}}}
	return eventstore.New(rdb, wire.JSON(types)), func() {
		_ = rdb.Close()
		server.Close()
	}
}

func ExampleNew() {
	store, closeAll := openAccounts()
	defer closeAll()
	ctx := context.Background()
	id := accounts.ID("acc-1")

	_, err := store.Append(ctx, es.AppendOptions{}, deposit(id, 1, 500))
	fmt.Println(err)

	again, err := store.Append(ctx, es.AppendOptions{}, deposit(id, 1, 500)) // its reply was lost, say
	fmt.Println(again.Same, err)

	stranger := deposit(id, 1, 700) // somebody else was faster
	stranger.RequestID = "request-of-another"
	_, err = store.Append(ctx, es.AppendOptions{}, stranger)
	fmt.Println(errors.Is(err, es.ErrVersionConflict))
	fmt.Println(err)
	// Output:
	// <nil>
	// true <nil>
	// true
	// append bank-service.account/acc-1@(0) version 1 request request-of-another: version conflict
}

func ExampleStore_Load() {
	store, closeAll := openAccounts()
	defer closeAll()
	ctx := context.Background()
	id := accounts.ID("acc-1")
	commits := []es.Commit{deposit(id, 1, 500), deposit(id, 2, 300), deposit(id, 3, 200)}
	if _, err := store.Append(ctx, es.AppendOptions{}, commits...); err != nil {
		panic(err)
	}

	var balance int64
	for commit, err := range store.Load(ctx, id, es.Versions{}) {
		if err != nil {
			panic(err)
		}
		for _, event := range commit.Events {
			balance += event.Body.(Deposited).Cents
		}
	}
	fmt.Println(balance)
	// Output: 1000
}

func ExampleStore_LoadAt() {
	store, closeAll := openAccounts()
	defer closeAll()
	ctx := context.Background()
	id := accounts.ID("acc-1")
	commits := []es.Commit{deposit(id, 1, 500), deposit(id, 2, 300), deposit(id, 3, 200)}
	if _, err := store.Append(ctx, es.AppendOptions{}, commits...); err != nil {
		panic(err)
	}

	for commit, err := range store.LoadAt(ctx, id, time.Date(2026, 11, 2, 23, 0, 0, 0, time.UTC)) {
		if err != nil {
			panic(err)
		}
		fmt.Println(commit.Version, commit.Events[0].Body)
	}
	// Output:
	// 1 {500}
	// 2 {300}
}
