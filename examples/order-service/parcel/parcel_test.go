package parcel_test

import (
	"testing"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
)

var (
	now       = estest.Epoch
	created   = parcel.Created{Items: []string{"i1", "i2"}, Grams: 700, At: now}
	sent      = parcel.Sent{At: now}
	failed    = parcel.Failed{At: now}
	delivered = parcel.Delivered{At: now}
)

func TestPackageIsCreatedOnceFromItems(t *testing.T) {
	t.Parallel()
	estest.Given(parcel.Decider).When(parcel.Create{Items: []string{"i1", "i2"}, Grams: 700}).Then(t, created)
	estest.Given(parcel.Decider).When(parcel.Create{Grams: 700}).ThenError(t, parcel.ErrNoItems)
	estest.Given(parcel.Decider).When(parcel.Create{Items: []string{"i1", "i1"}}).ThenError(t, parcel.ErrItemTwice)
	estest.Given(parcel.Decider, created).When(parcel.Create{Items: []string{"i3"}}).ThenError(t, parcel.ErrCreated)
}

func TestPackageIsSentOnce(t *testing.T) {
	t.Parallel()
	estest.Given(parcel.Decider, created).When(parcel.Send{}).Then(t, sent)
	estest.Given(parcel.Decider, created, sent).When(parcel.Send{}).ThenError(t, parcel.ErrSent)
	estest.Given(parcel.Decider, created, sent, delivered).When(parcel.Send{}).ThenError(t, parcel.ErrDelivered)
}

func TestDeliveryFailsAnyNumberOfTimesAndSucceedsOnce(t *testing.T) {
	t.Parallel()
	estest.Given(parcel.Decider, created, sent, failed).When(parcel.Fail{}).Then(t, failed)
	estest.Given(parcel.Decider, created, sent, failed, failed).
		When(parcel.Deliver{}).
		Then(t, delivered).
		ThenState(t, parcel.State{Status: parcel.StatusDelivered, Items: created.Items, Grams: 700, Failures: 2})
	estest.Given(parcel.Decider, created, sent, delivered).When(parcel.Deliver{}).ThenError(t, parcel.ErrDelivered)
	estest.Given(parcel.Decider, created, sent, delivered).When(parcel.Fail{}).ThenError(t, parcel.ErrDelivered)
}

func TestOnlyASentPackageArrivesOrFails(t *testing.T) {
	t.Parallel()
	for _, c := range []es.CommandBody{parcel.Deliver{}, parcel.Fail{}} {
		estest.Given(parcel.Decider, created).When(c).ThenError(t, parcel.ErrNotSent)
	}
}

func TestNothingHappensToAPackageThatWasNotCreated(t *testing.T) {
	t.Parallel()
	for _, c := range []es.CommandBody{parcel.Send{}, parcel.Fail{}, parcel.Deliver{}} {
		estest.Given(parcel.Decider).When(c).ThenError(t, parcel.ErrNotCreated)
	}
}
