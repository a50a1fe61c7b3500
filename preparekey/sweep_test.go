package preparekey_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/preparekey"
)

func TestCLU06_SweepReachesEveryMaster(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		keys, name := open[string](t, rdb)
		longAgo := strconv.FormatInt(time.Now().Add(-11*time.Minute).UnixMilli(), 10)
		lately := strconv.FormatInt(time.Now().Add(-9*time.Minute).UnixMilli(), 10)
		for i := range 60 {
			plant(t, rdb, rediskey.Prepare(name, fmt.Sprint("long ago ", i)), `"a"`, longAgo)
			plant(t, rdb, rediskey.Prepare(name, fmt.Sprint("lately ", i)), `"a"`, lately)
			isTrue(t)(keys.Prepare(t.Context(), fmt.Sprint("held ", i), "a", time.Hour))
			isTrue(t)(keys.Prepare(t.Context(), fmt.Sprint("for ever ", i), "a", 0))
		}
		isTrue(t)(keys.Prepare(t.Context(), "back", "a", 0))
		isTrue(t)(keys.Rollback(t.Context(), "back")) // leaves a key that is no reservation
		require.NoError(t, rdb.Set(t.Context(), rediskey.Prepare(name, "no hash"), "x", 0).Err())
		plant(t, rdb, rediskey.Prepare(name, "no end"), `"a"`, "soon")

		removed, err := keys.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, 60, removed)
		for i := range 60 {
			_, err := keys.GetValue(t.Context(), fmt.Sprint("long ago ", i))
			require.ErrorIs(t, err, es.ErrNotFound)
			for _, kind := range []string{"lately ", "held ", "for ever "} {
				_, err := keys.GetValue(t.Context(), fmt.Sprint(kind, i))
				require.NoError(t, err, kind)
			}
		}
		removed, err = keys.Sweep(t.Context())
		require.NoError(t, err)
		require.Zero(t, removed)
		require.EqualValues(t, 2, rdb.Exists(t.Context(), rediskey.Prepare(name, "no hash")).Val()+rdb.Exists(t.Context(), rediskey.Prepare(name, "no end")).Val())
	})
}

func TestKEY06_SweepTakesItsNameLiterally(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	_, stem := open[string](t, rdb)
	names := []string{"t[ab]", "ta", "tb", "t*", "t?", `t\a`, "t^", "order", "order2"}
	for _, name := range names {
		plant(t, rdb, rediskey.Prepare(stem+name, "k"), `"a"`, "1000")
	}
	for i, name := range names {
		removed, err := preparekey.New[string](rdb, codec, stem+name).Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, removed, name)
		for _, other := range names[i+1:] {
			require.EqualValues(t, 1, rdb.Exists(t.Context(), rediskey.Prepare(stem+other, "k")).Val(), "%s took %s", name, other)
		}
	}
}

func TestCLU06_SweepRefusesAClientThatHidesTheNodes(t *testing.T) {
	t.Parallel()
	cluster := redistest.SharedCluster(t)
	pipelining, err := cluster.Client(t).AutoPipeline()
	require.NoError(t, err)
	for _, rdb := range []redis.UniversalClient{pipelining, cluster.Nodes[0].Client(t)} {
		keys, _ := open[string](t, rdb)
		_, err = keys.Sweep(t.Context())
		require.ErrorIs(t, err, es.ErrInvalid)
	}
	pipelining, err = redistest.Shared(t).Client(t).AutoPipeline()
	require.NoError(t, err)
	keys, _ := open[string](t, pipelining)
	_, err = keys.Sweep(t.Context())
	require.NoError(t, err)
}
