package item_test

import (
	"testing"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/examples/order-service/item"
)

var (
	now       = estest.Epoch
	placed    = item.Placed{Order: "o1", At: now}
	ranOut    = item.RanOut{At: now}
	reordered = item.Reordered{At: now}
	picked    = item.Picked{At: now}
	packed    = item.Packed{Package: "p1", At: now}
)

func TestItemIsPartOfOneOrder(t *testing.T) {
	t.Parallel()
	estest.Given(item.Decider).When(item.Place{Order: "o1"}).Then(t, placed)
	estest.Given(item.Decider).When(item.Place{}).ThenError(t, item.ErrNoOrder)
	estest.Given(item.Decider, placed).When(item.Place{Order: "o2"}).ThenError(t, item.ErrPlaced)
}

func TestItemGoesOutOfStockAndComesBack(t *testing.T) {
	t.Parallel()
	estest.Given(item.Decider, placed).When(item.RunOut{}).Then(t, ranOut)
	estest.Given(item.Decider, placed, ranOut).When(item.Reorder{}).Then(t, reordered)
	estest.Given(item.Decider, placed, ranOut, reordered).When(item.RunOut{}).Then(t, ranOut)
	estest.Given(item.Decider, placed, ranOut).When(item.RunOut{}).ThenError(t, item.ErrOutOfStock)
	estest.Given(item.Decider, placed).When(item.Reorder{}).ThenError(t, item.ErrInStock)
}

func TestItemIsPickedOnceAndOnlyFromTheShelf(t *testing.T) {
	t.Parallel()
	estest.Given(item.Decider, placed).When(item.Pick{}).Then(t, picked)
	estest.Given(item.Decider, placed, ranOut).When(item.Pick{}).ThenError(t, item.ErrOutOfStock)
	estest.Given(item.Decider, placed, ranOut, reordered).When(item.Pick{}).Then(t, picked)
	estest.Given(item.Decider, placed, picked).When(item.Pick{}).ThenError(t, item.ErrPicked)
}

func TestPickedItemIsPackedIntoOnePackage(t *testing.T) {
	t.Parallel()
	estest.Given(item.Decider, placed, picked).
		When(item.Pack{Package: "p1"}).
		Then(t, packed).
		ThenState(t, item.State{Status: item.StatusPacked, Order: "o1", Package: "p1"})
	estest.Given(item.Decider, placed, picked).When(item.Pack{}).ThenError(t, item.ErrNoPackage)
	estest.Given(item.Decider, placed).When(item.Pack{Package: "p1"}).ThenError(t, item.ErrNotPicked)
	estest.Given(item.Decider, placed, ranOut).When(item.Pack{Package: "p1"}).ThenError(t, item.ErrNotPicked)
	estest.Given(item.Decider, placed, picked, packed).When(item.Pack{Package: "p2"}).ThenError(t, item.ErrPacked)
}

func TestItemThatLeftTheShelfHasNoStockToRunOutOf(t *testing.T) {
	t.Parallel()
	for _, c := range []es.CommandBody{item.RunOut{}, item.Reorder{}, item.Pick{}} {
		estest.Given(item.Decider, placed, picked).When(c).ThenError(t, item.ErrPicked)
		estest.Given(item.Decider, placed, picked, packed).When(c).ThenError(t, item.ErrPacked)
	}
}

func TestNothingHappensToAnItemThatWasNotOrdered(t *testing.T) {
	t.Parallel()
	for _, c := range []es.CommandBody{item.RunOut{}, item.Reorder{}, item.Pick{}, item.Pack{Package: "p1"}} {
		estest.Given(item.Decider).When(c).ThenError(t, item.ErrNotPlaced)
	}
}
