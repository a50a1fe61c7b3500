package recovery_test

import (
	"fmt"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/recovery"
)

// writeLetter writes a letter as lua/bury_entry.lua does; id is "*" or the letter's own.
func writeLetter(t testing.TB, rdb redis.UniversalClient, id string, l recovery.Letter) string {
	t.Helper()
	values := []string{
		"stream", l.Topic, "entry", "7-7", "group", l.Group, "consumer", "c", "reason", string(l.Reason), "error", "it failed",
		"first", "1700000000000", "last", "1700000001000", "attempts", "5", "aggregate", l.Aggregate,
		"replays", strconv.Itoa(l.Replays), "origin", "3-3",
	}
	for i, text := range l.Fields {
		if i%2 == 0 {
			text = "f:" + text
		}
		values = append(values, text)
	}
	id, err := rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: rediskey.DeadLetters(l.Topic), ID: id, Values: values}).Result()
	require.NoError(t, err)
	return id
}

// letter is one of group, with a message of its own.
func letter(topic, group string) recovery.Letter {
	return recovery.Letter{
		Topic: topic, Group: group, Reason: recovery.Limit, Aggregate: "o-1",
		Fields: recovery.Fields{"msg", `{"a":1}`, "", "", "msg", "again", "replays", "9", "packed", "no", "f:x", "y"},
	}
}

func lettersOf(t testing.TB, seq iter.Seq2[recovery.Letter, error]) []string {
	t.Helper()
	ids := []string{}
	for l, err := range seq {
		require.NoError(t, err)
		ids = append(ids, l.Topic+" "+l.ID)
	}
	return ids
}

func TestLettersAreListedNewestFirstOverAllTopics(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		a, b, quiet := "a."+freshTopic(), "b."+freshTopic(), freshTopic()
		var want []string
		for i := range 130 { // several pages; 9 is before 10; ids that two topics share
			id := fmt.Sprintf("%d-%d", 5+i/2, i%2)
			writeLetter(t, rdb, id, letter(a, "g"))
			both := []string{a + " " + id}
			if i%3 == 0 {
				writeLetter(t, rdb, id, letter(b, "g"))
				both = append(both, b+" "+id)
			}
			want = append(both, want...)
		}
		f := recovery.LetterFilter{Topics: []string{a, b, quiet}}
		require.Equal(t, want, lettersOf(t, letters.List(t.Context(), f, recovery.Letter{})))

		var paged []string
		var last recovery.Letter
		for n := 1; n > 0; {
			n = 0
			for l, err := range letters.List(t.Context(), f, last) {
				require.NoError(t, err)
				paged, last = append(paged, l.Topic+" "+l.ID), recovery.Letter{Topic: l.Topic, ID: l.ID}
				if n++; n == 7 {
					break
				}
			}
		}
		require.Equal(t, want, paged)

		require.NoError(t, recovery.Register(t.Context(), rdb, a, b, quiet))
		found := map[string]bool{}
		for l, err := range letters.List(t.Context(), recovery.LetterFilter{}, recovery.Letter{}) {
			require.NoError(t, err)
			found[l.Topic] = true
		}
		require.True(t, found[a] && found[b] && !found[quiet], "through the index")
	})
}

func TestLettersAreFoundByWhatTheyAre(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		groups, reasons := []string{"g", "h"}, []recovery.Reason{recovery.Limit, recovery.Undecodable, recovery.Crashed}
		for i := range 120 {
			l := letter(topic, groups[i%2])
			l.Reason, l.Aggregate = reasons[i%3], "o-"+strconv.Itoa(i%5)
			writeLetter(t, rdb, fmt.Sprintf("%d-0", 1000+i), l)
		}
		for _, c := range []struct {
			f    recovery.LetterFilter
			want int
		}{
			{recovery.LetterFilter{}, 120},
			{recovery.LetterFilter{Group: "g"}, 60},
			{recovery.LetterFilter{Reason: recovery.Crashed}, 40},
			{recovery.LetterFilter{Aggregate: "o-4"}, 24},
			{recovery.LetterFilter{Group: "h", Reason: recovery.Undecodable, Aggregate: "o-3"}, 4},
			{recovery.LetterFilter{Group: "nobody"}, 0},
		} {
			c.f.Topics = []string{topic}
			for l, err := range letters.List(t.Context(), c.f, recovery.Letter{}) {
				require.NoError(t, err)
				require.True(t, (c.f.Group == "" || l.Group == c.f.Group) && (c.f.Reason == "" || l.Reason == c.f.Reason) &&
					(c.f.Aggregate == "" || l.Aggregate == c.f.Aggregate))
			}
			n, err := letters.Count(t.Context(), c.f)
			require.NoError(t, err)
			require.EqualValues(t, c.want, n, "%+v", c.f)
		}
		oldest, age, err := letters.Oldest(t.Context(), recovery.LetterFilter{Topics: []string{topic}, Group: "h", Reason: recovery.Crashed})
		require.NoError(t, err)
		require.Equal(t, "1005-0", oldest.ID)
		require.InDelta(t, serverTime(t, rdb, 0)-1005, age.Milliseconds(), 60_000)
		_, _, err = letters.Oldest(t.Context(), recovery.LetterFilter{Topics: []string{topic}, Group: "nobody"})
		require.ErrorIs(t, err, es.ErrNotFound)
	})
}

func TestALetterHoldsTheMessageAsItWas(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		want := letter(topic, "g")
		want.ID = writeLetter(t, rdb, "*", want)
		want.Consumer, want.Error, want.Attempts = "c", "it failed", 5
		want.Stream, want.Entry, want.Origin = topic, "7-7", "3-3"
		want.First, want.Last = time.UnixMilli(1_700_000_000_000).UTC(), time.UnixMilli(1_700_000_001_000).UTC()
		got, err := letters.Get(t.Context(), topic, want.ID)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for l, err := range letters.List(t.Context(), recovery.LetterFilter{Topics: []string{topic}}, recovery.Letter{}) {
			require.NoError(t, err)
			require.Equal(t, want, l)
		}
		_, err = letters.Get(t.Context(), topic, "1-1")
		require.ErrorIs(t, err, es.ErrNotFound)
		require.ErrorContains(t, err, "get dead letter 1-1 of "+topic)
	})
}

func TestALetterThatCannotBeTakenApartHidesNoOther(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		letters := recovery.NewDeadLetters(rdb)
		topic := freshTopic()
		groupAt(t, rdb, topic, "g", "0")
		writeLetter(t, rdb, "1-1", letter(topic, "g"))
		require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{
			Stream: rediskey.DeadLetters(topic), ID: "2-2", Values: []string{"group", "g", "packed", "3:msg99:x"},
		}).Err())
		f := recovery.LetterFilter{Topics: []string{topic}}
		require.Equal(t, []string{topic + " 2-2", topic + " 1-1"}, lettersOf(t, letters.List(t.Context(), f, recovery.Letter{})))
		bad, err := letters.Get(t.Context(), topic, "2-2")
		require.ErrorIs(t, err, es.ErrCorrupt)
		require.Equal(t, "g", bad.Group)
		require.Empty(t, bad.Fields)
		id, err := letters.Replay(t.Context(), topic, "2-2")
		require.NoError(t, err)
		entry, err := rdb.XRange(t.Context(), rediskey.Retry(topic, "g"), id, id).Result()
		require.NoError(t, err)
		require.Equal(t, "3:msg99:x", entry[0].Values["packed"], "as it was")
	})
}

func TestIDsOfLettersAreWholeIDs(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	letters := recovery.NewDeadLetters(rdb)
	topic := freshTopic()
	writeLetter(t, rdb, "1-1", letter(topic, "g"))
	for _, id := range []string{"", "-", "+", "1", "(1-1", "1-x", "-1-1", "99999999999999999999-1"} {
		_, err := letters.Get(t.Context(), topic, id)
		require.ErrorIs(t, err, es.ErrInvalid, "%q", id)
		_, err = letters.Replay(t.Context(), topic, id)
		require.ErrorIs(t, err, es.ErrInvalid, "%q", id)
		_, err = letters.Discard(t.Context(), topic, "1-1", id)
		require.ErrorIs(t, err, es.ErrInvalid, "%q", id)
		if id != "" {
			for _, err := range letters.List(t.Context(), recovery.LetterFilter{Topics: []string{topic}}, recovery.Letter{ID: id}) {
				require.ErrorIs(t, err, es.ErrInvalid, "%q", id)
			}
		}
	}
	require.Len(t, idsIn(t, rdb, rediskey.DeadLetters(topic)), 1)
}
