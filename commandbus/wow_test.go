package commandbus_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
	"github.com/headwater-go/headwater/wire"
)

// golden is what the real Wow did (testdata/wow.json, written by Wow v8.10.10).
type golden struct {
	Topic, Group     string
	Fields, Messages []string
	BadRecords       []struct {
		What   string
		Record map[string]string
	}
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	data, err := os.ReadFile("testdata/wow.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &g))
	return g
}

type changeNote struct {
	Note string `json:"note"`
}

func (changeNote) CommandName() string { return "change_note" }

// wowOrders is Wow's aggregate under an alias that no other test has.
func wowOrders() (es.AggregateType, es.Codec) {
	typ := es.AggregateType{Context: "order-service", Alias: "t" + strings.ToLower(rand.Text()), Name: "order"}
	return typ, wire.JSON(es.Types{Aggregate: typ, Commands: []es.Type{{Body: changeNote{}, BodyType: "com.acme.order.ChangeNote"}}})
}

// subscribe hands every command that arrives to the channel.
func subscribe(t *testing.T, b *commandbus.Bus, s es.Subscription) <-chan es.Command {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	got, ended := make(chan es.Command, 100), make(chan error, 1)
	go func() {
		ended <- b.Subscribe(ctx, s, func(_ context.Context, c es.Command) (es.Result, error) {
			got <- c
			return es.Result{}, nil
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return got
}

func next(t *testing.T, got <-chan es.Command) es.Command {
	t.Helper()
	select {
	case c := <-got:
		return c
	case <-time.After(time.Minute):
		require.Fail(t, "nothing arrived")
		return es.Command{}
	}
}

func add(t *testing.T, rdb redis.UniversalClient, topic string, values any) {
	t.Helper()
	require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: values}).Err())
}

func TestWowsCommandsAreReadAndWrittenByteForByte(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	require.Equal(t, g.Group, commandbus.Group("order-service"))
	require.Equal(t, []string{"msg"}, g.Fields)
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ, codec := wowOrders()
		topic := strings.Replace(g.Topic, "order-service", typ.Alias, 1)
		b := commandbus.New(rdb, codec)
		for _, m := range g.Messages {
			add(t, rdb, topic, []string{"msg", m})
		}
		got := subscribe(t, b, es.Subscription{Group: g.Group, Aggregates: []es.AggregateType{typ}})
		for range g.Messages {
			c := next(t, got)
			require.Equal(t, changeNote{"n"}, c.Body)
			require.NoError(t, b.Send(t.Context(), c))
		}
		entries := rdb.XRange(t.Context(), topic, "-", "+").Val()
		require.Len(t, entries, 2*len(g.Messages))
		for i, m := range g.Messages {
			require.Equal(t, map[string]any{"msg": m}, entries[len(g.Messages)+i].Values, "one field, the same bytes")
		}
	})
}

func TestWowsBadRecordsBecomeDeadLettersAndTheNextIsHandled(t *testing.T) {
	t.Parallel()
	// Where Wow's receiver dies or leaves the record pending; what is not named is handled.
	reasons := map[string]recovery.Reason{
		"no msg field": recovery.Undecodable, "msg is not JSON": recovery.Undecodable, "msg empty": recovery.Undecodable,
		"field requestId missing": recovery.Undecodable, "header is an array": recovery.Undecodable,
		"header value is an object": recovery.Undecodable, "msg is a JSON array": recovery.Undecodable,
		"unknown body class": recovery.UnknownType,
	}
	g := readGolden(t)
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, bad := range g.BadRecords {
			typ, codec := wowOrders()
			topic := typ.String() + ":command"
			add(t, rdb, topic, bad.Record)
			add(t, rdb, topic, []string{"msg", g.Messages[0]})
			got := subscribe(t, commandbus.New(rdb, codec), es.Subscription{Group: g.Group, Aggregates: []es.AggregateType{typ}, Workers: 1})
			reason, buried := reasons[bad.What]
			if !buried {
				require.Equal(t, "cmd-9", next(t, got).ID, bad.What)
			}
			require.Equal(t, "cmd-1", next(t, got).ID, bad.What)
			require.Eventually(t, func() bool { return rdb.XPending(t.Context(), topic, g.Group).Val().Count == 0 }, time.Minute, 2*time.Millisecond)
			var letters []recovery.Letter
			for l, err := range recovery.NewDeadLetters(rdb).List(t.Context(), recovery.LetterFilter{Topics: []string{topic}}, recovery.Letter{}) {
				require.NoError(t, err)
				letters = append(letters, l)
			}
			if !buried {
				require.Empty(t, letters, bad.What)
				continue
			}
			require.Len(t, letters, 1, bad.What)
			require.Equal(t, reason, letters[0].Reason, bad.What)
			require.Equal(t, g.Group, letters[0].Group)
			require.NotEmpty(t, letters[0].Error)
			for name, value := range bad.Record {
				require.Equal(t, recovery.Fields{name, value}, letters[0].Fields, "the raw fields")
			}
		}
	})
}

// asked answers for the request ids it holds, and fails for one.
type asked map[string]bool

func (a asked) HasRequest(_ context.Context, _ es.AggregateID, requestID string) (bool, error) {
	if requestID == "fails once" && !a[requestID] {
		a[requestID] = true
		return false, errors.New("no answer")
	}
	return a[requestID] && requestID != "fails once", nil
}

var _ commandbus.Requests = (*eventstore.Store)(nil)

func TestCommandsThatKotlinTookItselfArePassedOverInItsGroupOnceTheyAreStored(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ, codec := wowOrders()
		b, none := commandbus.New(rdb, codec), commandbus.New(rdb, codec)
		b.Requests = asked{"stored": true}
		send := func(request, localFirst string) {
			c := es.NewCommand(typ.ID("o-1"), changeNote{"n"})
			c.RequestID, c.Header = request, es.Header{{Key: es.HeaderLocalFirst, Value: localFirst}}
			require.NoError(t, b.Send(t.Context(), c))
		}
		send("stored", "true")
		send("stored", "TRUE")
		send("lost", "true")
		send("stored", "false")
		send("fails once", "true")
		send("last", "")
		for name, c := range map[string]struct {
			bus    *commandbus.Bus
			shared bool
			want   []string
		}{
			"shared":                {b, true, []string{"lost", "stored", "fails once", "last"}},
			"shared, nobody to ask": {none, true, []string{"stored", "stored", "lost", "stored", "fails once", "last"}},
			"a group of Go's alone": {b, false, []string{"stored", "stored", "lost", "stored", "fails once", "last"}},
		} {
			got := subscribe(t, c.bus, es.Subscription{Group: name, Aggregates: []es.AggregateType{typ}, SharedWithWow: c.shared, Backoff: time.Millisecond})
			var requests []string
			for range c.want {
				requests = append(requests, next(t, got).RequestID)
			}
			require.Equal(t, c.want, requests, name)
			require.Eventually(t, func() bool { return rdb.XPending(t.Context(), typ.String()+":command", name).Val().Count == 0 }, time.Minute, 2*time.Millisecond)
			require.Empty(t, got)
		}
	})
}
