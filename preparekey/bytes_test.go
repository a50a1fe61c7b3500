package preparekey_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/preparekey"
)

// A type's values have one form, Wow's. What somebody wrote in another form means the
// same and is not the same bytes: whoever must change it takes the bytes as they are.
func TestJSON07_ValuesAreComparedInOneForm(t *testing.T) {
	t.Parallel()
	type pair struct {
		Z int    `json:"z"`
		A string `json:"a"`
	}
	const canonical = `{"z":1,"a":"<b>/"}`
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		keys, name := open[pair](t, rdb)
		raw := preparekey.New[es.Raw](rdb, codec, name)
		for _, text := range []string{canonical, `{"a":"<b>/","z":1}`, `{"z":1,"a":"<b>\/"}`, `{"z":1,"a":"\u003cb\u003e/"}`, `{"z":1.0,"a":"<b>/"}`, `{ "z": 1, "a": "<b>/" }`} {
			plant(t, rdb, rediskey.Prepare(name, text), text, forever)
			value, err := keys.Get(t.Context(), text)
			if err == nil { // 1.0 is no int to Go
				require.Equal(t, pair{1, "<b>/"}, value, text)
			}
			same, err := keys.ReprepareFrom(t.Context(), text, pair{1, "<b>/"}, pair{1, "<b>/"}, 0)
			require.NoError(t, err)
			require.Equal(t, text == canonical, same, text)

			bytes, err := raw.Get(t.Context(), text)
			require.NoError(t, err)
			require.Equal(t, text, string(bytes), "they come back as they were written")
			isFalse(t)(raw.ReprepareFrom(t.Context(), text, es.Raw(text+" "), es.Raw(text), 0))
			isTrue(t)(raw.ReprepareFrom(t.Context(), text, bytes, es.Raw(canonical), 0))
			isTrue(t)(keys.RollbackFrom(t.Context(), text, pair{1, "<b>/"}))
		}
	})
}
