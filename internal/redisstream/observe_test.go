package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisstream"
	"github.com/headwater-go/headwater/internal/redistest"
)

// witness keeps what it is told.
type witness struct {
	mu  sync.Mutex
	all []es.Observation
}

func (w *witness) Observe(_ context.Context, o es.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, o)
}

// told are the observations of one type so far.
func told[O es.Observation](w *witness) []O {
	w.mu.Lock()
	defer w.mu.Unlock()
	var some []O
	for _, o := range w.all {
		if one, ok := o.(O); ok {
			some = append(some, one)
		}
	}
	return some
}

// kinds are the names of all observations of one message, in order.
func (w *witness) kinds(id string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, o := range w.all {
		v := reflect.ValueOf(o)
		if d := v.FieldByName("Delivery"); d.IsValid() && d.FieldByName("ID").String() == id {
			names = append(names, v.Type().Name())
		}
	}
	return names
}

func TestAnObserverHearsWhatBecomesOfAMessage(t *testing.T) {
	t.Parallel()
	rdb, topic, w := redistest.Shared(t).Client(t), freshTopic(), &witness{}
	c := config(topic)
	c.Observer, c.MaxDeliveries = w, 2
	r := start(t, rdb, c, func(_ context.Context, text string) error {
		switch text {
		case "bad|fails":
			return errors.New("no")
		case "bad|permanent":
			return es.Permanent(errors.New("never"))
		}
		return nil
	})
	p := redisstream.Publisher{Redis: rdb, Observer: w}
	for _, text := range []string{"a|good", "bad|fails", "b|undecodable", "c|unknown", "bad|permanent"} {
		require.NoError(t, p.Publish(t.Context(), topic, []byte(text)))
	}
	require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: []string{"other", "x"}}).Err())
	drained(t, rdb, topic)
	r.end(t)
	entries, err := rdb.XRange(t.Context(), topic, "-", "+").Result()
	require.NoError(t, err)
	for i, want := range [][]string{
		{"Received", "Handled"},
		{"Received", "Failed", "Retried", "Failed", "DeadLettered"},
		{"Received", "Undecodable", "DeadLettered"},
		{"Received", "Undecodable", "DeadLettered"},
		{"Received", "Failed", "DeadLettered"},
		{"Received", "Undecodable", "DeadLettered"},
	} {
		require.Equal(t, want, w.kinds(entries[i].ID), entries[i].Values)
	}
	reasons := map[string]es.UndecodableReason{}
	for _, u := range told[es.Undecodable](w) {
		reasons[u.ID] = u.Reason
	}
	require.Equal(t, map[string]es.UndecodableReason{
		entries[2].ID: es.DeserializationFailed, entries[3].ID: es.UnknownMessageType, entries[5].ID: es.MissingMessageField,
	}, reasons)
	failed := told[es.Failed](w)
	attempts := []int{}
	for _, f := range failed {
		if f.ID == entries[1].ID {
			attempts = append(attempts, f.Attempt)
		}
	}
	require.Equal(t, []int{1, 2}, attempts)
	retried := told[es.Retried](w)[0]
	require.Equal(t, 1, retried.Attempt)
	require.Positive(t, retried.After)
	require.Len(t, told[es.Published](w), 5)
	require.Equal(t, []es.Subscribed{{Topic: topic, Group: "g", Consumer: c.Consumer}}, told[es.Subscribed](w))
	require.Equal(t, []es.Unsubscribed{{Topic: topic, Group: "g", Consumer: c.Consumer}}, told[es.Unsubscribed](w))
	require.Empty(t, told[es.Unavailable](w))
}

func TestAFailedPublishIsObserved(t *testing.T) {
	t.Parallel()
	rdb, topic, w := redistest.Shared(t).Client(t), freshTopic(), &witness{}
	err := redisstream.Publisher{Redis: rdb, Observer: w}.Publish(t.Context(), topic, make([]byte, redisstream.MaxBytes+1))
	require.ErrorIs(t, err, es.ErrTooLarge)
	require.Equal(t, err, told[es.Published](w)[0].Err)
}

type panics struct{}

func (panics) Observe(context.Context, es.Observation) { panic("observer") }

func TestPanicsOfAnObserverHarmNothing(t *testing.T) {
	t.Parallel()
	rdb, topic := redistest.Shared(t).Client(t), freshTopic()
	var log lines
	w := &witness{}
	c := config(topic)
	c.Observer, c.Logger, c.MaxDeliveries = es.Observers(panics{}, w, nil), log.logger(), 2
	r := start(t, rdb, c, func(_ context.Context, text string) error {
		if text == "a|1" {
			return errors.New("no")
		}
		return nil
	})
	texts := numbered(10, "a", "b")
	texts[1] = "a|1"
	for _, text := range append(texts, "b|undecodable") {
		require.NoError(t, redisstream.Publisher{Redis: rdb, Observer: panics{}, Logger: log.logger()}.Publish(t.Context(), topic, []byte(text)))
	}
	drained(t, rdb, topic)
	r.end(t)
	require.Len(t, told[es.Handled](w), 9, "the panic of one observer keeps nothing from the other")
	require.Len(t, letters(t, rdb, topic), 2)
	require.Positive(t, log.count("an observer panics"))
	require.Equal(t, 1, log.count("reason=undecodable"))
	require.Zero(t, log.count("no bar in it"), "the decoder's error may quote the message")
}

func TestAnObserverHearsOfClaimsAndLostEntries(t *testing.T) {
	t.Parallel()
	rdb, topic, w := redistest.Shared(t).Client(t), freshTopic(), &witness{}
	group(t, rdb, topic)
	publish(t, rdb, topic, numbered(5, "a", "b")...)
	ids := abandon(t, rdb, topic, "dead", 5)
	require.NoError(t, rdb.XDel(t.Context(), topic, ids[0]).Err())
	c := config(topic)
	c.Observer = w
	start(t, rdb, c, func(context.Context, string) error { return nil })
	eventually(t, "all are handled", func() bool { return len(told[es.Handled](w)) == 4 })
	n := 0
	eventually(t, "the claims are told", func() bool {
		n = 0
		for _, o := range told[es.Claimed](w) {
			n += o.Claimed
		}
		return n >= 4 && len(told[es.Missing](w)) > 0
	})
	require.Equal(t, 4, n)
	require.Equal(t, []string{ids[0]}, told[es.Missing](w)[0].IDs)
	require.True(t, told[es.Handled](w)[0].Recovered)
}

func TestHealthOfASubscriptionThroughAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	rdb, topic, w, health := server.Client(t), freshTopic(), &witness{}, &es.Health{}
	c := config(topic)
	c.Observer = es.Observers(health, w)
	r := start(t, rdb, c, func(context.Context, string) error { return nil })
	publish(t, rdb, topic, "a|1")
	eventually(t, "it works", func() bool { return len(told[es.Handled](w)) == 1 })
	require.NoError(t, health.Check(t.Context()))

	require.NoError(t, rdb.XGroupDestroy(t.Context(), topic, "g").Err())
	eventually(t, "the group is restored", func() bool { return len(told[es.GroupRestored](w)) > 0 })
	eventually(t, "it has healed", func() bool { return len(told[es.Healed](w)) > 0 && health.Check(t.Context()) == nil })

	before := len(told[es.Unavailable](w))
	server.Kill(t)
	eventually(t, "it is unhealthy", func() bool { return health.Check(t.Context()) != nil })
	problem := health.Problems()[0]
	require.Equal(t, []string{topic, "g", c.Consumer}, []string{problem.Topic, problem.Group, problem.Consumer})
	require.Error(t, problem.Cause)
	require.False(t, problem.Since.IsZero())
	require.ErrorIs(t, health.Check(t.Context()), es.ErrUnavailable)
	eventually(t, "more calls than one fail", func() bool { return len(told[es.Unavailable](w)) == before+1 })
	r.end(t)
	require.NoError(t, health.Check(t.Context()), "what has ended is no problem")
	require.True(t, slices.ContainsFunc(told[es.Unsubscribed](w), func(u es.Unsubscribed) bool { return u.Consumer == c.Consumer }))
}

// BenchmarkTellNobody shows what the calls cost where there is no observer.
func BenchmarkTellNobody(b *testing.B) {
	b.ReportAllocs()
	d := es.Delivery{Topic: "t", ID: "1-1", Group: "g", Attempt: 1}
	for b.Loop() {
		_ = es.Tell(b.Context(), nil, es.Handled{Delivery: d})
		_ = es.Tell(b.Context(), nil, es.Failed{Delivery: d})
	}
}

func TestTellingNobodyAllocatesNothing(t *testing.T) {
	d := es.Delivery{Topic: "t", ID: "1-1", Group: "g", Attempt: 1}
	err := fmt.Errorf("x")
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = es.Tell(ctx, nil, es.Handled{Delivery: d})
		_ = es.Tell(ctx, nil, es.Failed{Delivery: d, Err: err})
		_ = es.Tell(ctx, nil, es.Published{Topic: "t", Messages: 1})
	}))
}
