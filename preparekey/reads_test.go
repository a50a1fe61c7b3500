package preparekey_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
)

// otherReads are hashes that a Go codec reads in another way than Wow's: a struct does
// not tell an absent member from its zero, and takes no member of another kind.
var otherReads = map[string]func(got es.Prepared[Username], err error) bool{
	"object, missing field": func(got es.Prepared[Username], err error) bool { return err == nil && got.Value == Username{At: 5} },
	"object, missing long": func(got es.Prepared[Username], err error) bool {
		return err == nil && got.Value == Username{UserID: "u"}
	},
	"object, null long": func(got es.Prepared[Username], err error) bool {
		return err == nil && got.Value == Username{UserID: "u"}
	},
	"object, long as string":   isCorrupt,
	"object, long as float":    isCorrupt,
	"object, string as number": isCorrupt,
}

func isCorrupt(got es.Prepared[Username], err error) bool {
	return errors.Is(err, es.ErrCorrupt) && got == es.Prepared[Username]{}
}

func TestGoldenReads(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	require.Len(t, g.Reads, 22)
	rdb := redistest.Shared(t).Client(t)
	for _, v := range g.Reads {
		t.Run(v.What, func(t *testing.T) {
			if v.Type == "Username" {
				got, err := readHash[Username](t, rdb, v.Fields)
				if other, ok := otherReads[v.What]; ok {
					require.True(t, other(got, err), "%v %v", got, err)
					return
				}
				var text string // of the object that Wow read
				require.NoError(t, json.Unmarshal(v.GetValue.Value, &text))
				want, decodeErr := decode[Username](text)
				require.NoError(t, decodeErr)
				requireRead(t, v.GetValue, want, got, err)
				return
			}
			got, err := readHash[string](t, rdb, v.Fields)
			want, decodeErr := decode[string](string(v.GetValue.Value))
			if v.GetValue.Error == nil {
				require.NoError(t, decodeErr)
			}
			requireRead(t, v.GetValue, want, got, err)
		})
	}
}

func readHash[V any](t *testing.T, rdb redis.UniversalClient, hash map[string]string) (es.Prepared[V], error) {
	t.Helper()
	keys, name := open[V](t, rdb)
	require.NoError(t, rdb.HSet(t.Context(), rediskey.Prepare(name, "k"), hash).Err())
	return keys.GetValue(t.Context(), "k")
}

func requireRead[V any](t *testing.T, wow read, want V, got es.Prepared[V], err error) {
	t.Helper()
	if wow.Error != nil {
		require.ErrorIs(t, err, es.ErrCorrupt)
		require.Equal(t, es.Prepared[V]{}, got)
		return
	}
	require.NoError(t, err)
	require.Equal(t, es.Prepared[V]{Value: want, Until: until(t, strconv.FormatInt(wow.TTLAt, 10))}, got)
}
