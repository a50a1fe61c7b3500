package wire_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

type nameless struct{}

func (nameless) EventName() string { return " " }

type byPointer struct{}

func (*byPointer) CommandName() string { return "by_pointer" }

type otherPaid struct{}

func (otherPaid) EventName() string     { return "paid" }
func (otherPaid) EventRevision() string { return "2" }

type otherPlace struct{}

func (otherPlace) CommandName() string { return "place" }

// sealed writes itself, but only as JSON.
type sealed struct{ cents int64 }

func (s sealed) MarshalJSON() ([]byte, error) { return json.Marshal(s.cents) }

type sold struct{ Price []*sealed }

func (sold) EventName() string { return "sold" }

func TestMistakesInTablesPanicAtOnce(t *testing.T) {
	t.Parallel()
	other := es.AggregateType{Context: "other", Alias: "s", Name: "x"}
	cases := map[string][]es.Types{
		"blank":                             {{Aggregate: es.AggregateType{Context: "shop"}}},
		"brace":                             {{Aggregate: es.AggregateType{Context: "shop", Name: "{x}"}}},
		"two tables for s.cart":             {carts(), carts()},
		`share the alias "s"`:               {carts(), {Aggregate: other}},
		"has two aliases":                   {carts(), {Aggregate: es.AggregateType{Context: "shop", Name: "x"}}},
		"has no Body":                       {{Aggregate: cart, Events: []es.Type{{Name: "x"}}}},
		"is no event body":                  {{Aggregate: cart, Events: []es.Type{{Body: place{}}}}},
		"is no command body":                {{Aggregate: cart, Commands: []es.Type{{Body: 7}}}},
		"give &byPointer{}":                 {{Aggregate: cart, Commands: []es.Type{{Body: byPointer{}}}}},
		"blank name":                        {{Aggregate: cart, Events: []es.Type{{Body: nameless{}}}}},
		`one name and revision, "paid" "2"`: {{Aggregate: cart, Events: []es.Type{{Body: paid{}}, {Body: otherPaid{}}}}},
		`one name, "place"`:                 {{Aggregate: cart, Commands: []es.Type{{Body: place{}}, {Body: otherPlace{}}}}},
		`one body type, "T"`:                {{Aggregate: cart, Commands: []es.Type{{Body: place{}, BodyType: "T"}, {Body: otherPlace{}, Name: "p", BodyType: "T"}}}},
		"has two entries":                   {{Aggregate: cart, Events: []es.Type{{Body: paid{}}, {Body: &paid{}, Name: "settled"}}}},
		"lacks its Event or its Up":         {{Aggregate: cart, Upcasters: []es.Upcaster{{Event: "x"}}}},
		`two upcasters of s.cart`:           {{Aggregate: cart, Upcasters: []es.Upcaster{{Event: "x", Up: drop}, {Event: "x", Up: drop}}}},
	}
	for want, types := range cases {
		require.Contains(t, panicOf(func() { wire.JSON(types...) }), want)
		require.Contains(t, panicOf(func() { wire.MessagePack(types...) }), want)
	}
	// Only MessagePack would lose what sealed holds.
	types := es.Types{Aggregate: cart, Events: []es.Type{{Body: sold{}}}}
	wire.JSON(types)
	require.Contains(t, panicOf(func() { wire.MessagePack(types) }), "sealed has MarshalJSON")
	_, err := wire.MessagePack(carts()).EncodeValue(sealed{1})
	require.ErrorIs(t, err, es.ErrInvalid)
	require.ErrorIs(t, err, es.ErrInvalid, "the answer is remembered")
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

func TestFormerNamesAreReadAndNotWritten(t *testing.T) {
	t.Parallel()
	types := carts()
	types.Events = append(types.Events, es.Type{Body: paid{}, Name: "settled", Revision: "1", BodyType: "shop.Settled", Former: true})
	types.Commands = append(types.Commands, es.Type{Body: place{}, Name: "put", BodyType: "shop.Put", Former: true})
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		c := someCommit(paid{5})
		c.Events[0].Name, c.Events[0].Revision, c.Events[0].BodyType = "settled", "1", "gone"
		c.Events[0].Body = es.Raw(`{"cents":5}`)
		b, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		got, err := codec.DecodeCommit(b)
		require.NoError(t, err)
		require.Equal(t, paid{5}, got.Events[0].Body)

		fresh := es.Commit{Aggregate: c.Aggregate, Version: 1, Events: []es.Event{{ID: "e", Body: paid{5}}}}
		b, err = codec.EncodeCommit(&fresh)
		require.NoError(t, err)
		got, err = codec.DecodeCommit(b)
		require.NoError(t, err)
		require.Equal(t, "paid", got.Events[0].Name)
		require.Equal(t, "2", got.Events[0].Revision)

		cmd := someCommand(place{})
		cmd.Name, cmd.BodyType = "put", "shop.Put"
		b, err = codec.EncodeCommand(&cmd)
		require.NoError(t, err)
		gotCmd, err := codec.DecodeCommand(b)
		require.NoError(t, err)
		require.Equal(t, place{}, gotCmd.Body)
	}, types)
}

type myDelete struct {
	Why string `json:"why"`
}

func (myDelete) CommandName() string { return "default_delete_aggregate" }

func TestBuiltinsCanBeOverridden(t *testing.T) {
	t.Parallel()
	types := carts()
	types.Commands = append(types.Commands, es.Type{Body: myDelete{}, BodyType: "me.ahoo.wow.api.command.DefaultDeleteAggregate"})
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		c := someCommand(myDelete{"spam"})
		b, err := codec.EncodeCommand(&c)
		require.NoError(t, err)
		got, err := codec.DecodeCommand(b)
		require.NoError(t, err)
		require.Equal(t, myDelete{"spam"}, got.Body)
	}, types)
}

// Revisions of one event may have Go types of their own; the body type, which they
// share, then says nothing about a third revision.
func TestSharedBodyTypeDoesNotGuess(t *testing.T) {
	t.Parallel()
	types := carts()
	types.Events = []es.Type{{Body: paid{}, Name: "x", Revision: "1"}, {Body: placed{}, Name: "x", Revision: "2"}}
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		for revision, want := range map[string]any{"1": paid{}, "2": placed{}, "3": es.Raw{}} {
			c := someCommit()
			c.Events = []es.Event{{ID: "e", Name: "x", Revision: revision, BodyType: "x", Body: es.Raw(`{}`)}}
			b, err := codec.EncodeCommit(&c)
			require.NoError(t, err)
			got, err := codec.DecodeCommit(b)
			require.NoError(t, err)
			require.IsType(t, want, got.Events[0].Body)
		}
	}, types)
}
