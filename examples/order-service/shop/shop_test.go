package shop_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/parcel"
	"github.com/headwater-go/headwater/examples/order-service/shop"
	"github.com/headwater-go/headwater/memory"
	"github.com/headwater-go/headwater/wire"
)

var start = time.Date(2019, 5, 31, 23, 0, 0, 0, time.UTC)

// story is one order of two items, paid, with one of them delivered.
func story(t *testing.T, store shop.Store) *shop.Shop {
	t.Helper()
	s := shop.New(store)
	for i, step := range []struct {
		id      es.AggregateID
		creates bool
		body    es.CommandBody
	}{
		{order.Type.ID("o1"), true, order.Place{Items: []string{"i1", "i2"}, Price: 1250}},
		{item.Type.ID("i1"), true, item.Place{Order: "o1"}},
		{item.Type.ID("i2"), true, item.Place{Order: "o1"}},
		{order.Type.ID("o1"), false, order.Confirm{}},
		{item.Type.ID("i2"), false, item.Pick{}},
		{item.Type.ID("i2"), false, item.Pack{Package: "p1"}},
		{parcel.Type.ID("p1"), true, parcel.Create{Items: []string{"i2"}, Grams: 1234}},
		{order.Type.ID("o1"), false, order.Pay{Amount: 1250}},
		{parcel.Type.ID("p1"), false, parcel.Send{}},
		{parcel.Type.ID("p1"), false, parcel.Deliver{}},
	} {
		c := es.NewCommand(step.id, step.body)
		c.Create, c.CreateTime = step.creates, start.Add(time.Duration(i)*time.Hour)
		_, err := s.Handle(t.Context(), c)
		require.NoError(t, err)
	}
	return s
}

func TestTotalsAreThoseOfTheStoredAggregates(t *testing.T) {
	t.Parallel()
	totals, err := story(t, memory.NewEventStore()).Count(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, shop.Totals{
		Orders: 1, OrdersPaid: 1, PaidTotal: 1250, Items: 2, ItemsPacked: 1, Packages: 1, PackagesDelivered: 1,
	}, totals)
}

func TestTimelineFollowsItemsIntoTheirPackages(t *testing.T) {
	t.Parallel()
	moments, err := story(t, memory.NewEventStore()).Timeline(t.Context(), "o1")
	require.NoError(t, err)
	require.Len(t, moments, 10)
	for i, want := range []shop.Moment{
		{Who: "order o1", What: "placed, 2 items for 12.50"},
		{Who: "item i1", What: "ordered"},
		{Who: "item i2", What: "ordered"},
		{Who: "order o1", What: "confirmed"},
		{Who: "item i2", What: "picked"},
		{Who: "item i2", What: "packed into package p1"},
		{Who: "package p1", What: "created with 1 items, 1.234 kg"},
		{Who: "order o1", What: "paid, 12.50"},
		{Who: "package p1", What: "sent"},
		{Who: "package p1", What: "delivered"},
	} {
		want.At = start.Add(time.Duration(i) * time.Hour)
		require.Equal(t, want, moments[i])
	}
}

func TestTimelineOfAnUnknownOrder(t *testing.T) {
	t.Parallel()
	_, err := shop.New(memory.NewEventStore()).Timeline(t.Context(), "o1")
	require.ErrorIs(t, err, es.ErrNotFound)
}

func TestRefusalIsTheDomainsOwnError(t *testing.T) {
	t.Parallel()
	s := story(t, memory.NewEventStore())
	_, err := s.Handle(t.Context(), es.NewCommand(order.Type.ID("o1"), order.Pay{Amount: 1250}))
	require.ErrorIs(t, err, es.ErrRefused)
	require.ErrorIs(t, err, order.ErrPaid)
}

func TestCommandForAnotherServiceIsNotHandled(t *testing.T) {
	t.Parallel()
	c := es.NewCommand(es.AggregateType{Context: "bank", Name: "account"}.ID("a"), order.Confirm{})
	_, err := shop.New(memory.NewEventStore()).Handle(t.Context(), c)
	require.ErrorIs(t, err, es.ErrUnknownType)
}

var errBroken = errors.New("the server is gone")

// breaking fails to load, or to scan on after the first id.
type breaking struct {
	*memory.EventStore
	load, scan bool
}

func (b breaking) Load(ctx context.Context, id es.AggregateID, r es.Versions) iter.Seq2[es.Commit, error] {
	if !b.load {
		return b.EventStore.Load(ctx, id, r)
	}
	return func(yield func(es.Commit, error) bool) { yield(es.Commit{}, errBroken) }
}

func (b breaking) Scan(ctx context.Context, t es.AggregateType, after string) iter.Seq2[es.AggregateID, error] {
	if !b.scan {
		return b.EventStore.Scan(ctx, t, after)
	}
	return func(yield func(es.AggregateID, error) bool) {
		for id, err := range b.EventStore.Scan(ctx, t, after) {
			if !yield(id, err) {
				return
			}
			yield(es.AggregateID{}, errBroken)
			return
		}
	}
}

func TestTotalsAreWholeOrAnError(t *testing.T) {
	t.Parallel()
	store := memory.NewEventStore()
	story(t, store)
	_, err := shop.New(breaking{store, true, false}).Count(t.Context(), 2)
	require.ErrorIs(t, err, errBroken)
	_, err = shop.New(breaking{store, false, true}).Count(t.Context(), 2)
	require.ErrorIs(t, err, errBroken)
}

// Every body that the service stores comes back from the wire as it was.
func TestEveryEventHasATypeOnTheWire(t *testing.T) {
	t.Parallel()
	store, codec := memory.NewEventStore(), wire.JSON(shop.Types()...)
	story(t, store)
	seen := 0
	for _, types := range shop.Types() {
		for id, err := range store.Scan(t.Context(), types.Aggregate, "") {
			require.NoError(t, err)
			for c, err := range store.Load(t.Context(), id, es.Versions{}) {
				require.NoError(t, err)
				data, err := codec.EncodeCommit(&c)
				require.NoError(t, err)
				back, err := codec.DecodeCommit(data)
				require.NoError(t, err)
				require.Equal(t, c.Events[0].Body, back.Events[0].Body)
				seen++
			}
		}
	}
	require.Equal(t, 10, seen)
}
