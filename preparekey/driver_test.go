package preparekey_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/preparekey"
)

var _ es.PrepareKey[string] = (*preparekey.Keys[string])(nil)

func TestPrepareKey(t *testing.T) {
	t.Parallel()
	redistest.Each(t, conform)
}

func TestPrepareKeyOnAutoPipeline(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		pipelining, err := rdb.AutoPipeline()
		require.NoError(t, err)
		conform(t, pipelining)
	})
}

func conform(t *testing.T, rdb redis.UniversalClient) {
	estest.TestPrepareKey(t,
		func(t *testing.T) *preparekey.Keys[string] { keys, _ := open[string](t, rdb); return keys },
		func(t *testing.T) *preparekey.Keys[estest.Holder] {
			keys, _ := open[estest.Holder](t, rdb)
			return keys
		})
}
