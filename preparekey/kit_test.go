package preparekey_test

import (
	"crypto/rand"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/preparekey"
	"github.com/headwater-go/headwater/wire"
)

var codec = wire.JSON()

// open is reservations under a name that no other test has.
func open[V any](t *testing.T, rdb redis.UniversalClient) (keys *preparekey.Keys[V], name string) {
	t.Helper()
	name = t.Name() + " " + rand.Text()
	return preparekey.New[V](rdb, codec, name), name
}

// isTrue and isFalse take the answer of an operation as it is.
func isTrue(t *testing.T) func(bool, error) {
	return func(done bool, err error) {
		t.Helper()
		require.NoError(t, err)
		require.True(t, done)
	}
}

func isFalse(t *testing.T) func(bool, error) {
	return func(done bool, err error) {
		t.Helper()
		require.NoError(t, err)
		require.False(t, done)
	}
}

// plant writes a reservation as a Kotlin node does.
func plant(t *testing.T, rdb redis.Cmdable, key, value, ttlAt string) {
	t.Helper()
	require.NoError(t, rdb.HSet(t.Context(), key, "value", value, "ttlAt", ttlAt).Err())
}

// fields are the value and the end that are stored, which is all a Kotlin node sees.
func fields(t *testing.T, rdb redis.Cmdable, key string) map[string]string {
	t.Helper()
	hash, err := rdb.HGetAll(t.Context(), key).Result()
	require.NoError(t, err)
	delete(hash, "by")
	return hash
}
