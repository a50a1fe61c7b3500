package snapshot_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
)

// mark is the schema mark of a snapshot with the state type S.
func mark[S any](t *testing.T, rdb redis.Cmdable) string {
	t.Helper()
	id := newID()
	require.NoError(t, snapshot.New[S](rdb, jsonCodec(id)).Save(t.Context(), es.Snapshot[S]{Meta: cartAt(id, 1).Meta}))
	// A store of raw states reads every mark, and does not decode the state.
	got, err := snapshot.New[es.Raw](rdb, jsonCodec(id)).Load(t.Context(), id)
	require.NoError(t, err)
	return got.Schema
}

type (
	money struct {
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
	}
	plain struct {
		ID    string           `json:"id"`
		Total money            `json:"total"`
		Lines []money          `json:"lines"`
		Tags  map[string][]int `json:"tags"`
		Note  *string          `json:"note"`
	}
	// reordered has the fields of plain in another order, and more that JSON leaves out.
	reordered struct {
		Note  *string          `json:"note,omitempty"`
		Tags  map[string][]int `json:"tags"`
		_     int
		Skip  int     `json:"-"`
		Lines []money `json:"lines,omitzero"`
		Total money   `json:"total"`
		ID    string  `json:"id"`
	}
	tree struct {
		Left, Right *tree
		Forest      map[string]forest
	}
	forest []tree
	base   struct {
		ID string `json:"id"`
	}
	embedding struct {
		base
		money
	}
	wrapped[T any] struct{ Value T }
)

func (s wrapped[T]) MarshalText() ([]byte, error)  { return fmt.Append(nil, s.Value), nil }
func (s *wrapped[T]) UnmarshalText(b []byte) error { return nil }

func TestMarkIsTheSameOnEveryMachine(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	require.Equal(t, "21765fa4d1f09cac", mark[plain](t, rdb))
	require.Equal(t, "574ad33f6b44f9f2", mark[tree](t, rdb), "a type that holds itself")
	require.Equal(t, "98dc0ad14304a830", mark[embedding](t, rdb))
	require.Equal(t, "093451e59b85b4c5", mark[wrapped[money]](t, rdb), "a type that writes its own text")
	require.Equal(t, "89f86703fc6bceca", mark[struct {
		At    time.Time
		Big   big.Int
		Extra any
	}](t, rdb))
}

func TestMarkIgnoresWhatJSONDoesNotShow(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	require.Equal(t, mark[plain](t, rdb), mark[reordered](t, rdb), "order, omitempty and left-out fields")
	require.Equal(t, mark[struct{ A []money }](t, rdb), mark[struct {
		A []struct {
			Amount   int64  `json:"amount"`
			Currency string `json:"currency"`
		}
	}](t, rdb), "names of types")
	require.Equal(t, mark[struct{ Name string }](t, rdb), mark[struct {
		Renamed string `json:"Name"`
	}](t, rdb), "Go's names behind a tag")
}

func TestMarkSeesWhateverChangesTheJSON(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	marks := map[string]string{}
	for what, mark := range map[string]string{
		"base":         mark[struct{ A []money }](t, rdb),
		"another name": mark[struct{ B []money }](t, rdb),
		"another tag": mark[struct {
			A []money `json:"a"`
		}](t, rdb),
		"another type":   mark[struct{ A map[string]money }](t, rdb),
		"an array":       mark[struct{ A [3]money }](t, rdb),
		"a longer array": mark[struct{ A [4]money }](t, rdb),
		"a pointer":      mark[struct{ A []*money }](t, rdb),
		"one more": mark[struct {
			A []money
			B int
		}](t, rdb),
		"fewer": mark[struct{}](t, rdb),
		"deep inside": mark[struct {
			A []struct {
				Amount   float64 `json:"amount"`
				Currency string  `json:"currency"`
			}
		}](t, rdb),
		"number as text": mark[struct {
			A []struct {
				Amount   int64  `json:"amount,string"`
				Currency string `json:"currency"`
			}
		}](t, rdb),
		"another msgpack tag": mark[struct {
			A []money `msgpack:"a"`
		}](t, rdb),
		"own marshaler":     mark[struct{ A time.Time }](t, rdb),
		"another marshaler": mark[struct{ A big.Int }](t, rdb),
	} {
		require.NotContains(t, marks, mark, what)
		require.Len(t, mark, 16)
		marks[mark] = what
	}
}

func TestRawStatesAreReadWithEveryMarkAndKeepIt(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for name, codecFor := range map[string]func(es.AggregateID) es.Codec{"JSON": jsonCodec, "MessagePack": packedCodec} {
		t.Run(name, func(t *testing.T) {
			id := newID()
			s, raw := snapshot.New[cart](rdb, codecFor(id)), snapshot.New[es.Raw](rdb, codecFor(id))
			require.NoError(t, s.Save(t.Context(), cartAt(id, 3)))
			before := stored(t, rdb, id)
			got, err := raw.Load(t.Context(), id)
			require.NoError(t, err)
			require.NotEmpty(t, got.Schema)
			require.Contains(t, string(got.State), "line of version 3")
			require.NoError(t, s.Drop(t.Context(), id))
			require.NoError(t, raw.Save(t.Context(), got))
			require.Equal(t, before, stored(t, rdb, id))
		})
	}
}

func TestAStateThatASnapshotWouldCutIsRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	require.PanicsWithValue(t, `snapshot: the unexported field secret of struct { Total int; secret int } would be lost in a snapshot: export it, or tag it json:"-" where its loss is meant`,
		func() { mark[struct{ Total, secret int }](t, rdb) })
	require.NotPanics(t, func() { mark[struct{ At time.Time }](t, rdb) }, "it writes itself")
}
