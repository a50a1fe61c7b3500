package es_test

import (
	"fmt"

	"github.com/headwater-go/headwater/es"
)

type openAccount struct{ Owner string }

func (openAccount) CommandName() string { return "open_account" }

type accountOpened struct{ Owner string }

func (accountOpened) EventName() string { return "account_opened" }

var annsAccount = es.AggregateType{Context: "bank-service", Name: "account"}.ID("acc-1")

func ExampleNewCommand() {
	c := es.NewCommand(annsAccount, openAccount{Owner: "ann"})
	fmt.Println(c.Name, c.Aggregate, c.Create)
	// Output: open_account bank-service.account/acc-1@(0) false
}

func ExampleNewCreateCommand() {
	c := es.NewCreateCommand(annsAccount, openAccount{Owner: "ann"})
	fmt.Println(c.Name, c.Create, *c.Expected)
	// Output: open_account true 0
}

func ExampleNewEvent() {
	e := es.NewEvent("e-1", accountOpened{Owner: "ann"})
	fmt.Println(e.ID, e.Name, e.Revision)
	// Output: e-1 account_opened 0.0.1
}

func ExampleNewRandomIDs() {
	newID := es.NewRandomIDs()
	first, second := newID(), newID()
	fmt.Println(len(first), first < second)
	// Output: 15 true
}
