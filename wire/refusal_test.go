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
