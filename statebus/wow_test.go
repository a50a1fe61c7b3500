package statebus_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
	"github.com/headwater-go/headwater/statebus"
	"github.com/headwater-go/headwater/wire"
)

// golden is what the real Wow did (testdata/wow.json, written by Wow v8.10.10).
type golden struct {
	Topic, Group     string
	Fields, Messages []string
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	data, err := os.ReadFile("testdata/wow.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &g))
	return g
}

// subscribe hands every state event that arrives to the channel.
func subscribe(t *testing.T, b *statebus.Bus[es.Raw], s es.Subscription) <-chan es.StateEvent {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	got, ended := make(chan es.StateEvent, 100), make(chan error, 1)
	go func() {
		ended <- b.Subscribe(ctx, s, func(_ context.Context, e es.StateEvent) error {
			got <- e
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return got
}

func next(t *testing.T, got <-chan es.StateEvent) es.StateEvent {
	t.Helper()
	select {
	case e := <-got:
		return e
	case <-time.After(time.Minute):
		require.Fail(t, "nothing arrived")
		return es.StateEvent{}
	}
}

func TestWowsRecordsAreReadAndWrittenByteForByteAndBadOnesBuried(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	require.Equal(t, g.Group, statebus.Group("order-service", "SnapshotDispatcher"))
	require.Equal(t, []string{"msg"}, g.Fields)
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := es.AggregateType{Context: "order-service", Alias: "t" + strings.ToLower(rand.Text()), Name: "order"}
		topic := strings.Replace(g.Topic, "order-service", typ.Alias, 1)
		codec := wire.JSON(es.Types{Aggregate: typ})
		b := statebus.New[es.Raw](rdb, codec)
		s := es.Subscription{Group: g.Group, Aggregates: []es.AggregateType{typ}}
		require.NoError(t, b.Prepare(t.Context(), s))
		for _, values := range [][]string{{"unexpected", "x"}, {"msg", "not-json"}, {"msg", ""}, {"msg", "[]"}} {
			require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: values}).Err())
		}
		for _, m := range g.Messages {
			require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: []string{"msg", m, "other", "1"}}).Err())
		}
		got := subscribe(t, b, s)
		for range g.Messages {
			require.NoError(t, b.Publish(t.Context(), next(t, got)))
		}
		entries := rdb.XRevRange(t.Context(), topic, "+", "-").Val()
		for i, m := range g.Messages {
			require.Equal(t, map[string]any{"msg": m}, entries[len(g.Messages)-1-i].Values, "one field, the same bytes")
		}
		require.Eventually(t, func() bool { return rdb.XPending(t.Context(), topic, g.Group).Val().Count == 0 }, time.Minute, 2*time.Millisecond)
		letters := 0
		for l, err := range recovery.NewDeadLetters(rdb).List(t.Context(), recovery.LetterFilter{Topics: []string{topic}}, recovery.Letter{}) {
			require.NoError(t, err)
			require.Equal(t, recovery.Undecodable, l.Reason)
			letters++
		}
		require.Equal(t, 4, letters)
	})
}

func TestWhatKotlinTookItselfIsPassedOverInItsGroupOnly(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := es.AggregateType{Context: "order-service", Alias: "t" + strings.ToLower(rand.Text()), Name: "order"}
		codec := wire.JSON(es.Types{Aggregate: typ})
		b := statebus.New[es.Raw](rdb, codec)
		for _, localFirst := range []string{"true", "True", "false", ""} {
			m := strings.Replace(g.Messages[0], `"header":{}`, `"header":{"local_first":"`+localFirst+`"}`, 1)
			require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: typ.String() + ":state", Values: []string{"msg", m}}).Err())
		}
		for _, shared := range []bool{true, false} {
			s := es.Subscription{Group: rand.Text(), Aggregates: []es.AggregateType{typ}, Start: es.FromBeginning, SharedWithWow: shared}
			got := subscribe(t, b, s)
			want := []string{"false", ""}
			if !shared {
				want = []string{"true", "True", "false", ""}
			}
			for _, mark := range want {
				require.Equal(t, mark, next(t, got).Header.Get(es.HeaderLocalFirst))
			}
			require.Eventually(t, func() bool { return rdb.XPending(t.Context(), typ.String()+":state", s.Group).Val().Count == 0 }, time.Minute, 2*time.Millisecond)
			require.Empty(t, got)
		}
	})
}
