package recovery_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

func TestEachFunctionThatFailedHasALetter(t *testing.T) {
	t.Parallel()
	// Hostile names too, since a letter's own fields stand beside them.
	one := es.Function{Context: "shop", Processor: "Mails", Name: "onPaid"}
	two := es.Function{Context: "f:msg", Processor: "packed", Name: "origin"}
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, gone := range []bool{false, true} {
			a, id := entryOf(t, rdb, hostile)
			l := recovery.Letter{Reason: recovery.Limit, Error: "all", Attempts: 5, Aggregate: "o-1"}
			if gone {
				l.Fields = hostile
				require.NoError(t, rdb.XDel(t.Context(), a.Topic, id).Err())
			}
			require.NoError(t, a.Bury(t.Context(), a.Topic, id, l,
				es.FunctionFailure{Function: one}, es.FunctionFailure{Function: two, Err: es.Permanent(errors.New("never"))}))
			require.Empty(t, pendingIDs(t, rdb, a.Topic, ""))
			letters := buried(t, rdb, a.Topic)
			require.Len(t, letters, 2)
			slices.Reverse(letters)
			require.Equal(t, []any{one, recovery.Limit, "all"}, []any{letters[0].Function, letters[0].Reason, letters[0].Error})
			require.Equal(t, []any{two, recovery.Permanent, "never"}, []any{letters[1].Function, letters[1].Reason, letters[1].Error})
			for _, l := range letters {
				require.Equal(t, hostile, l.Fields)
				require.Equal(t, []any{5, "o-1", id}, []any{l.Attempts, l.Aggregate, l.Entry})
			}
			require.NoError(t, a.Bury(t.Context(), a.Topic, id, l), "again, where the reply was lost")
			require.Len(t, buried(t, rdb, a.Topic), 2)
		}
	})
}

func TestAReplayIsForTheFunctionOfItsLetter(t *testing.T) {
	t.Parallel()
	f := es.Function{Context: "shop", Processor: "Mails", Name: "onPaid"}
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a, id := entryOf(t, rdb, hostile)
		groupAt(t, rdb, a.Retry(), "g", "0")
		letters := recovery.NewDeadLetters(rdb)
		require.NoError(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{Reason: recovery.Limit}, es.FunctionFailure{Function: f}))
		_, err := letters.Replay(t.Context(), a.Topic, buried(t, rdb, a.Topic)[0].ID)
		require.NoError(t, err)
		entry := readAs(t, rdb, a.Retry(), "g", "a", 1)[0]
		require.Equal(t, f, recovery.RetryFunction(retriesOf(t, rdb, a.Topic, "g")[0]))

		silence(t, rdb, a.Topic, "a")
		b := settled(t, rdb, a.Topic, "b")
		taken, _ := sweep(t, b, a.Retry(), 0)
		require.Equal(t, f, taken[0].Function, "also for who takes it over")
		require.Equal(t, hostile, taken[0].Fields)
		require.NoError(t, b.Bury(t.Context(), a.Retry(), entry, recovery.Letter{Reason: recovery.Crashed}, es.FunctionFailure{Function: f}))

		l := buried(t, rdb, a.Topic)[0]
		require.Equal(t, f, l.Function)
		for _, bad := range []recovery.Fields{nil, {"msg"}} {
			_, err = letters.ReplayAs(t.Context(), l, bad)
			require.ErrorIs(t, err, es.ErrInvalid)
		}
		_, err = letters.ReplayAs(t.Context(), l, recovery.Fields{"msg", "anew", "context", "mine"})
		require.NoError(t, err)
		require.Empty(t, buried(t, rdb, a.Topic))
		again := retriesOf(t, rdb, a.Topic, "g")[1]
		own, replays, origin, err := recovery.ReadRetry(again)
		require.NoError(t, err)
		require.Equal(t, []any{recovery.Fields{"msg", "anew", "context", "mine"}, 2, id, f}, []any{own, replays, origin, recovery.RetryFunction(again)})
		_, err = letters.ReplayAs(t.Context(), l, recovery.Fields{"msg", "anew"})
		require.ErrorIs(t, err, es.ErrNotFound)
	})
}

func TestLettersAreFoundByTheirFunction(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	a, id := entryOf(t, rdb, hostile)
	require.NoError(t, a.Bury(t.Context(), a.Topic, id, recovery.Letter{Reason: recovery.Limit},
		es.FunctionFailure{Function: es.Function{Name: "a"}}, es.FunctionFailure{Function: es.Function{Name: "b"}}))
	n, err := recovery.NewDeadLetters(rdb).Count(t.Context(), recovery.LetterFilter{Topics: []string{a.Topic}, Function: "b"})
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}
