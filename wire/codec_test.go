package wire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

func TestCommandComesBackAsItWas(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		for _, change := range []func(*es.Command){
			func(*es.Command) {},
			func(c *es.Command) { c.Expected = new(7) },
			func(c *es.Command) { c.Expected, c.Create = new(0), true },
			func(c *es.Command) { c.AllowCreate, c.Void, c.OwnerID, c.SpaceID = true, true, "o", "s" },
			func(c *es.Command) {
				c.RequestID, c.Header = "r", append(c.Header, es.HeaderField{Key: "", Value: "a\x00b"})
			},
			func(c *es.Command) { c.Body, c.Name = es.DeleteAggregate{}, "default_delete_aggregate" },
			func(c *es.Command) { c.Body = es.ApplyResourceTags{Tags: es.Tags{"role": {"admin"}, "none": nil}} },
		} {
			c := someCommand(place{"bob", []line{{"A", 1, 2}}})
			change(&c)
			b, err := codec.EncodeCommand(&c)
			require.NoError(t, err)
			got, err := codec.DecodeCommand(b)
			require.NoError(t, err)
			require.NotEmpty(t, got.BodyType)
			c.BodyType = got.BodyType
			if digester, ok := codec.(interface {
				CommandDigest(c *es.Command) (string, error)
			}); ok {
				c.Digest, err = digester.CommandDigest(&c)
				require.NoError(t, err)
				require.NotEmpty(t, c.Digest)
			}
			require.Equal(t, c, got)
		}
	})
}

func TestCommitComesBackAsItWas(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		c := someCommit(somePlaced(), paid{100}, &counted{3}, es.AggregateDeleted{}, placed{Lines: []line{}, Labels: map[string]string{"b": "1", "a": "2"}})
		b, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		got, err := codec.DecodeCommit(b)
		require.NoError(t, err)
		require.Equal(t, "shop.Placed", got.Events[0].BodyType)
		require.Equal(t, "paid", got.Events[1].BodyType)
		require.Equal(t, "2", got.Events[1].Revision)
		c.Derive()
		for i := range got.Events {
			c.Events[i].BodyType = got.Events[i].BodyType
		}
		require.Equal(t, c, got)

		again, err := codec.EncodeCommit(&got)
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

func TestBodiesMayBeGivenAsValuesOrPointers(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		value, pointer := someCommit(somePlaced()), someCommit(new(somePlaced()))
		a, err := codec.EncodeCommit(&value)
		require.NoError(t, err)
		b, err := codec.EncodeCommit(&pointer)
		require.NoError(t, err)
		require.Equal(t, a, b)

		pointer.Events[0].Body = (*placed)(nil)
		_, err = codec.EncodeCommit(&pointer)
		require.ErrorIs(t, err, es.ErrInvalid)
	})
}

func TestDecodedBodiesShareNothing(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		c := someCommit(somePlaced())
		c.Events = append(c.Events, es.Event{ID: "e", Name: "foreign", Revision: "1", BodyType: "F", Body: es.Raw(`{"a":"kept"}`)})
		b, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		first, err := codec.DecodeCommit(b)
		require.NoError(t, err)
		second, err := codec.DecodeCommit(b)
		require.NoError(t, err)
		second.Events[0].Body.(placed).Lines[0].SKU = "changed"
		copy(second.Events[1].Body.(es.Raw), "########")
		require.Equal(t, somePlaced(), first.Events[0].Body)
		require.JSONEq(t, `{"a":"kept"}`, string(first.Events[1].Body.(es.Raw)))
	})
}

func TestStateEventAndSnapshotComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		state := cartState{Lines: []line{{"A", 1, 2}}, Open: true}
		e := es.StateEvent{
			Commit: someCommit(paid{1}), FirstOperator: "alice", FirstEventTime: noon, State: state, Deleted: true,
			Tags: es.Tags{"role": {"admin", "*"}, "empty": {}, "none": nil},
		}
		b, err := codec.EncodeStateEvent(&e)
		require.NoError(t, err)
		var into cartState
		got, err := codec.DecodeStateEvent(b, &into)
		require.NoError(t, err)
		require.Equal(t, state, into)
		e.Derive()
		e.Events[0].BodyType = "paid"
		require.Equal(t, e, got)

		raw, err := codec.DecodeStateEvent(b, nil)
		require.NoError(t, err)
		require.IsType(t, es.Raw{}, raw.State)
		again, err := codec.EncodeStateEvent(&raw)
		require.NoError(t, err)
		require.Equal(t, b, again)

		m := es.Meta{
			Aggregate: cart.ID("cart-1"), OwnerID: "o", SpaceID: "s", Version: 2147483647, EventID: "commit-1", FirstOperator: "alice",
			Operator: "bob", FirstEventTime: noon, EventTime: noon, SnapshotTime: noon, Tags: e.Tags, Deleted: true, Schema: "cart/2",
		}
		b, err = codec.EncodeSnapshot(&m, state)
		require.NoError(t, err)
		into = cartState{}
		meta, err := codec.DecodeSnapshot(b, &into)
		require.NoError(t, err)
		require.Equal(t, m, meta)
		require.Equal(t, state, into)
		_, err = codec.DecodeSnapshot(b, nil)
		require.NoError(t, err)
	})
}

func TestSchemaMarkIsLastAndOnlyWhereThereIsOne(t *testing.T) {
	t.Parallel()
	j := wire.JSON(carts())
	m := es.Meta{Aggregate: cart.ID("cart-1")}
	b, err := j.EncodeSnapshot(&m, cartState{})
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(b, []byte(`,"tags":{},"deleted":false}`)), string(b))
	m.Schema = "cart/2"
	b, err = j.EncodeSnapshot(&m, cartState{})
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(b, []byte(`,"deleted":false,"schema":"cart/2"}`)), string(b))
}

func TestUnknownEventIsKeptAndWrittenBackUnchanged(t *testing.T) {
	t.Parallel()
	// The writer knows an event that the reader does not.
	reader := carts()
	reader.Events = reader.Events[1:]
	for name, codecs := range map[string][2]es.Codec{
		"JSON":        {wire.JSON(carts()), wire.JSON(reader)},
		"MessagePack": {wire.MessagePack(carts()), wire.MessagePack(reader)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := someCommit(somePlaced())
			b, err := codecs[0].EncodeCommit(&c)
			require.NoError(t, err)
			got, err := codecs[1].DecodeCommit(b)
			require.NoError(t, err)
			require.IsType(t, es.Raw{}, got.Events[0].Body)
			require.Equal(t, "shop.Placed", got.Events[0].BodyType)
			again, err := codecs[1].EncodeCommit(&got)
			require.NoError(t, err)
			require.Equal(t, b, again)
		})
	}
}

func TestUnknownCommandIsNamed(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		c := someCommand(place{})
		c.Name, c.BodyType, c.Body = "explode", "com.mars.Explode", es.Raw(`{}`)
		b, err := codec.EncodeCommand(&c)
		require.NoError(t, err)
		_, err = codec.DecodeCommand(b)
		require.ErrorIs(t, err, es.ErrUnknownType)
		require.ErrorContains(t, err, `command "explode", body type "com.mars.Explode"`)

		c.Aggregate.Type.Name = "rocket"
		b, err = codec.EncodeCommand(&c)
		require.NoError(t, err)
		_, err = codec.DecodeCommand(b)
		require.ErrorIs(t, err, es.ErrUnknownType)
		require.ErrorContains(t, err, `aggregate "rocket" of context "shop"`)
	})
}
