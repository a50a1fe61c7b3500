package eventstore_test

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventstore"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

// Whatever stands at a version, a read yields a commit of that very aggregate or says
// what is wrong; it never panics, and an append never writes over it.
func FuzzReadsOfAnyMember(f *testing.F) {
	codecs := map[string]es.Codec{"JSON": wire.JSON(), "MessagePack": wire.MessagePack()}
	for _, sc := range readVectors(f).Append {
		for _, s := range sc.Steps {
			if s.Document == "" {
				continue
			}
			c, err := codecs["JSON"].DecodeCommit([]byte(s.Document))
			require.NoError(f, err)
			f.Add([]byte(s.Document), float64(1))
			if packed, err := codecs["MessagePack"].EncodeCommit(&c); err == nil {
				f.Add(packed, float64(1))
				f.Add(packed[:len(packed)/2], float64(1))
			}
			f.Add([]byte(s.Document)[:len(s.Document)/2], float64(2))
		}
	}
	for _, odd := range []string{"", "{", "{}", "null", "[]", "0", "\xff", "\x80", "\xc1", "not-json", `{"version":1}`, `{"id":"x","version":1,"body":[{}]}`} {
		f.Add([]byte(odd), float64(1))
		f.Add([]byte(odd), 1.5)
	}
	rdb := redistest.Shared(f).Client(f)
	id := order.ID("order-1")
	k := rediskey.EventKeys(id)
	f.Fuzz(func(t *testing.T, member []byte, score float64) {
		require.NoError(t, rdb.Del(t.Context(), k.Stream, k.Requests, k.IDs).Err())
		if rdb.ZAdd(t.Context(), k.Stream, redis.Z{Score: score, Member: member}).Err() != nil {
			t.Skip("not a score")
		}
		require.NoError(t, rdb.SAdd(t.Context(), k.Requests, "r", "req-order-1-1").Err())
		for name, codec := range codecs {
			s := eventstore.New(rdb, codec)
			check := func(c es.Commit, err error) {
				t.Helper()
				if err == nil {
					require.Equal(t, id, c.Aggregate, name)
					return
				}
				require.True(t, errors.Is(err, es.ErrCorrupt) || errors.Is(err, es.ErrWrongFormat) || errors.Is(err, es.ErrNotFound), "%s: %v", name, err)
			}
			commits, err := outcome(s.Load(t.Context(), id, es.Versions{}))
			check(es.Commit{Aggregate: id}, err)
			for i, c := range commits {
				check(c, nil)
				require.Equal(t, i+1, c.Version)
			}
			check(s.Last(t.Context(), id))
			check(s.Find(t.Context(), id, 1))
			check(s.FindRequest(t.Context(), id, "r"))
			check(s.FindRequest(t.Context(), id, "req-order-1-1"))
			require.Error(t, appendOne(t, s, commitOf(id, 1)), name)
		}
		require.EqualValues(t, 1, rdb.ZCard(t.Context(), k.Stream).Val())
	})
}

// Whatever stands in the index or among the notes, reading them ends with a word.
func FuzzScansOfAnyMember(f *testing.F) {
	for _, member := range []string{"", ".", "0061.KDAp", "0061.", "006", "0061.!", "d83d.KDAp", "MQ.KDAp", "\xff", "MQ", "MQ.KDAp.x"} {
		f.Add([]byte(member))
	}
	rdb := redistest.Shared(f).Client(f)
	typ := newType()
	s := open(rdb, typ)
	f.Fuzz(func(t *testing.T, member []byte) {
		ids, outbox := rediskey.Index(typ, 5), rediskey.Outbox(typ, 5)
		require.NoError(t, rdb.Del(t.Context(), ids, outbox).Err())
		for _, key := range []string{ids, outbox} {
			require.NoError(t, rdb.ZAdd(t.Context(), key, redis.Z{Member: member}).Err())
		}
		found, err := outcome(s.Scan(t.Context(), typ, ""))
		require.True(t, err == nil && len(found) == 1 || errors.Is(err, es.ErrCorrupt), "%v", err)
		notes, err := outcome(s.Unpublished(t.Context(), typ))
		require.True(t, err == nil && len(notes) == 1 || errors.Is(err, es.ErrCorrupt), "%v", err)
	})
}
