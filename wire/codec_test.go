package wire_test

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
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
			c.BodyType = got.BodyType
			require.Equal(t, c, got)
			require.NotEmpty(t, got.BodyType)
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
		for i := range b { // no method keeps data
			b[i] = '#'
		}
		second.Events[0].Body.(placed).Lines[0].SKU = "changed"
		require.Equal(t, somePlaced(), first.Events[0].Body)
		require.Equal(t, c.Header, first.Header)
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

func TestEachCodecKnowsTheDocumentsOfTheOther(t *testing.T) {
	t.Parallel()
	codecs := []es.Codec{wire.JSON(carts()), wire.MessagePack(carts())}
	for i, writer := range codecs {
		reader := codecs[1-i]
		c, cmd, m := someCommit(paid{1}), someCommand(place{}), es.Meta{Aggregate: cart.ID("1")}
		e := es.StateEvent{Commit: c, State: cartState{}}
		b, err := writer.EncodeCommit(&c)
		require.NoError(t, err)
		_, err = reader.DecodeCommit(b)
		requireWrongFormat(t, err)
		b, err = writer.EncodeCommand(&cmd)
		require.NoError(t, err)
		_, err = reader.DecodeCommand(b)
		requireWrongFormat(t, err)
		b, err = writer.EncodeStateEvent(&e)
		require.NoError(t, err)
		_, err = reader.DecodeStateEvent(b, nil)
		requireWrongFormat(t, err)
		b, err = writer.EncodeSnapshot(&m, cartState{})
		require.NoError(t, err)
		_, err = reader.DecodeSnapshot(b, nil)
		requireWrongFormat(t, err)
		b, err = writer.EncodeValue("x")
		require.NoError(t, err)
		requireWrongFormat(t, reader.DecodeValue(b, new(string)))
	}
}

func requireWrongFormat(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, es.ErrWrongFormat)
	require.NotErrorIs(t, err, es.ErrCorrupt)
}

func TestWhatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	bad := "a\xffb"
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		for what, change := range map[string]func(*es.Commit){
			"id":             func(c *es.Commit) { c.ID = bad },
			"context":        func(c *es.Commit) { c.Aggregate.Type.Context = bad },
			"tenant":         func(c *es.Commit) { c.Aggregate.Tenant = bad },
			"header key":     func(c *es.Commit) { c.Header = es.Header{{Key: bad}} },
			"header value":   func(c *es.Commit) { c.Header = es.Header{{Value: bad}} },
			"event id":       func(c *es.Commit) { c.Events[0].ID = bad },
			"text in a body": func(c *es.Commit) { c.Events[0].Body = placed{Customer: bad} },
			"map key":        func(c *es.Commit) { c.Events[0].Body = placed{Labels: map[string]string{bad: ""}} },
			"raw body":       func(c *es.Commit) { c.Events[0].Body = es.Raw(`"` + bad + `"`) },
			"raw nonsense":   func(c *es.Commit) { c.Events[0].Body = es.Raw(`{"a":1`) },
			"raw and more":   func(c *es.Commit) { c.Events[0].Body = es.Raw(`{} {}`) },
			"raw nothing":    func(c *es.Commit) { c.Events[0].Body = es.Raw(nil) },
			"NaN":            func(c *es.Commit) { c.Events[0].Body = placed{Rate: math.NaN()} },
			"infinity":       func(c *es.Commit) { c.Events[0].Body = placed{Rate: math.Inf(-1)} },
			"unknown type":   func(c *es.Commit) { c.Events[0].Body = struct{}{} },
			"no body":        func(c *es.Commit) { c.Events[0].Body = nil },
			"no events":      func(c *es.Commit) { c.Events = nil },
			"version":        func(c *es.Commit) { c.Version = math.MaxInt32 + 1 },
		} {
			c := someCommit(paid{1})
			change(&c)
			_, err := codec.EncodeCommit(&c)
			require.ErrorIs(t, err, es.ErrInvalid, what)
			require.NotErrorIs(t, err, es.ErrCorrupt, what)
		}
		_, err := codec.EncodeValue(bad)
		require.ErrorIs(t, err, es.ErrInvalid)
		_, err = codec.EncodeSnapshot(&es.Meta{Aggregate: cart.ID("1")}, nil)
		require.ErrorIs(t, err, es.ErrInvalid)
		_, err = codec.EncodeStateEvent(&es.StateEvent{Commit: someCommit(paid{1})})
		require.ErrorIs(t, err, es.ErrInvalid)
	})
}

func TestErrorsDoNotShowWhatABodyHolds(t *testing.T) {
	t.Parallel()
	doc := `{"id":"s-1","contextName":"shop","aggregateName":"cart","header":{},"aggregateId":"1","tenantId":"","commandId":"c","requestId":"r","version":1,"body":[{"id":"e","name":"paid","revision":"2","body":{"cents":"hunter2"}}],"createTime":1}`
	_, err := wire.JSON(carts()).DecodeCommit([]byte(doc))
	require.ErrorIs(t, err, es.ErrCorrupt)
	require.ErrorContains(t, err, `event "paid" revision "2"`)
	require.ErrorContains(t, err, "cents")
	require.NotContains(t, err.Error(), "hunter2")
	require.False(t, strings.Contains(err.Error(), "\n") || errors.Is(err, es.ErrUnknownType))
}

func TestHeaderMadeToHurtCostsNoQuadraticTime(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for i := range 200_000 {
		b.WriteString(`"` + strings.Repeat("k", 1+i%7) + string(rune('a'+i%26)) + strings.Repeat("0", i%3) + strconv.Itoa(i%100_000) + `":"v",`)
	}
	doc := `{"id":"s","contextName":"shop","aggregateName":"cart","header":{` + b.String() + `"last":"1","k":"x","last":"2"},"aggregateId":"1","tenantId":"","commandId":"c","requestId":"r","version":1,"body":[{"id":"e","name":"paid","revision":"2","body":{"cents":1}}],"createTime":1}`
	c, err := wire.JSON(carts()).DecodeCommit([]byte(doc))
	require.NoError(t, err)
	n := len(c.Header)
	require.Equal(t, []es.HeaderField{{Key: "last", Value: "2"}, {Key: "k", Value: "x"}}, []es.HeaderField(c.Header[n-2:]))
}
