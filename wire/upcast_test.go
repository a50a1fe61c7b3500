package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

func drop(es.RawEvent) ([]es.RawEvent, error) { return nil, nil }

// history is how the cart's events came to what they are: "ordered" of revision 1 had
// its price in whole units; revision 2 has cents; then it was taken apart into placed
// and paid. "viewed" is of no use any more.
func history() es.Types {
	types := carts()
	types.Upcasters = []es.Upcaster{
		{Event: "ordered", Revision: "1", Up: func(e es.RawEvent) ([]es.RawEvent, error) {
			e.Revision, e.Body = "2", bytes.ReplaceAll(e.Body, []byte(`"units":7`), []byte(`"cents":700`))
			return []es.RawEvent{e}, nil
		}},
		{Event: "ordered", Revision: "2", Up: func(e es.RawEvent) ([]es.RawEvent, error) {
			var old struct {
				Who   string
				Cents json.Number
			}
			if err := json.Unmarshal(e.Body, &old); err != nil {
				return nil, err
			}
			return []es.RawEvent{
				{Name: "placed", Revision: "0.0.1", Body: es.Raw(`{"customer":"` + old.Who + `"}`)},
				{Name: "paid", Revision: "2", Body: es.Raw(`{"cents":` + old.Cents.String() + `}`)},
				{Name: "archived", Revision: "9", BodyType: "shop.Archived", Body: es.Raw(`{"by":"upcaster"}`)},
			}, nil
		}},
		{Event: "viewed", Up: drop},
		{Event: "broken", Up: func(es.RawEvent) ([]es.RawEvent, error) { return nil, errBroken }},
		{Event: "loop", Up: func(e es.RawEvent) ([]es.RawEvent, error) { return []es.RawEvent{e}, nil }},
		{Event: "doubling", Up: func(e es.RawEvent) ([]es.RawEvent, error) { return []es.RawEvent{e, e}, nil }},
		{Event: "nonsense", Up: func(e es.RawEvent) ([]es.RawEvent, error) {
			return []es.RawEvent{{Name: "paid", Revision: "2", Body: es.Raw(`{"cents":`)}}, nil
		}},
	}
	return types
}

var errBroken = errors.New("cannot lift")

func oldCommit(events ...es.Event) es.Commit {
	c := someCommit()
	c.Events = events
	return c
}

func old(name, revision, body string) es.Event {
	return es.Event{ID: "old", Name: name, Revision: revision, BodyType: "shop.Old", Body: es.Raw(body)}
}

func TestOldEventsAreLiftedToToday(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		c := oldCommit(old("viewed", "7", `{}`), old("ordered", "1", `{"who":"ann","units":7}`), old("paid", "2", `{"cents":1}`))
		want := []es.Event{
			{ID: "old", Name: "placed", Revision: "0.0.1", BodyType: "shop.Placed", Body: placed{Customer: "ann"}},
			{ID: "old.2", Name: "paid", Revision: "2", BodyType: "paid", Body: paid{700}},
			{ID: "old.3", Name: "archived", Revision: "9", BodyType: "shop.Archived", Body: es.Raw(`{"by":"upcaster"}`)},
			{ID: "old", Name: "paid", Revision: "2", BodyType: "paid", Body: paid{1}},
		}
		lifted := oldCommit(want...)
		lifted.Derive()

		b, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		got, err := codec.DecodeCommit(b)
		require.NoError(t, err)
		require.Equal(t, lifted, got)

		b, err = codec.EncodeStateEvent(&es.StateEvent{Commit: c, State: cartState{}})
		require.NoError(t, err)
		e, err := codec.DecodeStateEvent(b, nil)
		require.NoError(t, err)
		require.Equal(t, lifted, e.Commit)

		// What was lifted and not known is written and read again as it is.
		b, err = codec.EncodeCommit(&got)
		require.NoError(t, err)
		again, err := codec.DecodeCommit(b)
		require.NoError(t, err)
		require.Equal(t, lifted, again)
	}, history())
}

func TestACommitWhoseEventsAreAllDroppedKeepsItsVersion(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		c := oldCommit(old("viewed", "1", `{}`))
		b, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		got, err := codec.DecodeCommit(b)
		require.NoError(t, err)
		require.Empty(t, got.Events)
		require.Equal(t, 3, got.Version)
	}, history())
}

func TestUpcastersThatFailOrNeverEndAreErrors(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		for name, want := range map[string]string{
			"broken": "cannot lift", "loop": "loop", "doubling": "loop", "nonsense": "unexpected end",
		} {
			c := oldCommit(old(name, "1", `{}`))
			b, err := codec.EncodeCommit(&c)
			require.NoError(t, err)
			_, err = codec.DecodeCommit(b)
			require.ErrorIs(t, err, es.ErrCorrupt)
			require.ErrorContains(t, err, want)
			if name == "broken" {
				require.ErrorIs(t, err, errBroken)
			}
		}
	}, history())
}

// What was written by MessagePack is shown to upcasters as JSON.
func TestUpcastersSeeJSON(t *testing.T) {
	t.Parallel()
	types, seen := carts(), make(chan string, 2)
	types.Upcasters = []es.Upcaster{{Event: "placed", Up: func(e es.RawEvent) ([]es.RawEvent, error) {
		seen <- string(e.Body)
		return nil, nil
	}}}
	eachCodec(t, func(t *testing.T, codec es.Codec) {
		body := somePlaced()
		body.Rate, body.Total, body.Labels = 1e-9, -1<<63, map[string]string{"a/b": "<é\u2028\x00>"}
		c := someCommit(body)
		b, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		_, err = codec.DecodeCommit(b)
		require.NoError(t, err)
	}, types)
	t.Cleanup(func() {
		first, second := <-seen, <-seen
		require.JSONEq(t, first, second)
		require.Contains(t, first, `"total":-9223372036854775808`)
		require.Contains(t, second, `"total":-9223372036854775808`)
	})
}
