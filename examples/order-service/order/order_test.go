package order_test

import (
	"testing"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/examples/order-service/order"
)

var (
	now       = estest.Epoch
	placed    = order.Placed{Items: []string{"i1", "i2"}, Price: 1250, At: now}
	confirmed = order.Confirmed{At: now}
	reminded  = order.Reminded{At: now}
	paid      = order.Paid{Amount: 1250, At: now}
)

func TestPlacedOrderHasItemsAndPrice(t *testing.T) {
	t.Parallel()
	estest.Given(order.Decider).
		When(order.Place{Items: []string{"i1", "i2"}, Price: 1250}).
		Then(t, placed).
		ThenState(t, order.State{Status: order.StatusPlaced, Items: []string{"i1", "i2"}, Price: 1250, PlacedAt: now})
}

func TestOrderNeedsItemsAndPrice(t *testing.T) {
	t.Parallel()
	empty := estest.Given(order.Decider)
	empty.When(order.Place{Price: 1250}).ThenError(t, order.ErrNoItems)
	empty.When(order.Place{Items: []string{"i1", "i2", "i1"}, Price: 1250}).ThenError(t, order.ErrItemTwice)
	empty.When(order.Place{Items: []string{"i1"}}).ThenError(t, order.ErrNoPrice)
	empty.When(order.Place{Items: []string{"i1"}, Price: -1}).ThenError(t, order.ErrNoPrice)
}

func TestPlacedOrderIsConfirmedOnce(t *testing.T) {
	t.Parallel()
	estest.Given(order.Decider, placed).When(order.Confirm{}).Then(t, confirmed)
	estest.Given(order.Decider, placed, confirmed).When(order.Confirm{}).ThenError(t, order.ErrConfirmed)
	estest.Given(order.Decider, placed, confirmed, paid).When(order.Confirm{}).ThenError(t, order.ErrConfirmed)
}

func TestOrderIsPlacedOnce(t *testing.T) {
	t.Parallel()
	estest.Given(order.Decider, placed).When(order.Place{Items: []string{"i9"}, Price: 1}).ThenError(t, order.ErrPlaced)
}

func TestConfirmedOrderIsPaidOnceAndInFull(t *testing.T) {
	t.Parallel()
	estest.Given(order.Decider, placed, confirmed).When(order.Pay{Amount: 1250}).Then(t, paid)
	estest.Given(order.Decider, placed, confirmed).When(order.Pay{Amount: 1249}).ThenError(t, order.ErrWrongAmount)
	estest.Given(order.Decider, placed, confirmed, paid).When(order.Pay{Amount: 1250}).ThenError(t, order.ErrPaid)
	estest.Given(order.Decider, placed).When(order.Pay{Amount: 1250}).ThenError(t, order.ErrNotConfirmed)
}

func TestReminderIsSentAsOftenAsItTakes(t *testing.T) {
	t.Parallel()
	estest.Given(order.Decider, placed, confirmed, reminded, reminded).
		When(order.Remind{}).
		Then(t, reminded).
		ThenState(t, order.State{Status: order.StatusConfirmed, Items: placed.Items, Price: 1250, Reminders: 3, PlacedAt: now})
}

func TestReminderNeedsAConfirmedOrderThatIsNotPaid(t *testing.T) {
	t.Parallel()
	estest.Given(order.Decider, placed).When(order.Remind{}).ThenError(t, order.ErrNotConfirmed)
	estest.Given(order.Decider, placed, confirmed, paid).When(order.Remind{}).ThenError(t, order.ErrPaid)
}

func TestNothingHappensToAnOrderThatWasNotPlaced(t *testing.T) {
	t.Parallel()
	for _, c := range []es.CommandBody{order.Confirm{}, order.Remind{}, order.Pay{Amount: 1}} {
		estest.Given(order.Decider).When(c).ThenError(t, order.ErrNotPlaced)
	}
}
