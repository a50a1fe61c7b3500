package redisrun_test

import (
	"io"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/internal/redistest"
)

// reply is an error that a server has sent.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestExplainTellsErrorsApartByTheirFirstWord(t *testing.T) {
	t.Parallel()
	for text, kind := range map[string]error{
		"OOM command not allowed when used memory > 'maxmemory'.":                         es.ErrOutOfMemory,
		"READONLY You can't write against a read only replica.":                           es.ErrUnavailable,
		"@user_script: 20: -OOM command not allowed when used memory > 'maxmemory'.":      es.ErrOutOfMemory,
		"@user_script: 45: -NOREPLICAS Not enough good replicas to write.":                es.ErrUnavailable,
		"WRONGTYPE Operation against a key holding the wrong kind of value":               es.ErrCorrupt,
		"@user_script: 3: -WRONGTYPE Operation against a key holding the wrong kind":      es.ErrCorrupt,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to": es.ErrUnavailable,
	} {
		err := redisrun.Explain(reply(text))
		require.ErrorIs(t, err, kind, text)
		require.ErrorIs(t, err, reply(text), "the server's own words stay")
	}
	for _, text := range []string{"ERR OOM is not its first word", "@user_script: 20: OOM without the server's mark", "NOSCRIPT No matching script"} {
		require.Equal(t, reply(text), redisrun.Explain(reply(text)), "it says all that there is to say")
	}
	require.ErrorIs(t, redisrun.Explain(io.EOF), es.ErrUncertain)
	require.Equal(t, redis.Nil, redisrun.Explain(redis.Nil))
	require.NoError(t, redisrun.Explain(nil))
}

// The servers' own texts, whichever server this is.
func TestExplainKnowsAFullMemoryFromWithinAScript(t *testing.T) {
	t.Parallel()
	c := redistest.Standalone(t, "maxmemory 1").Client(t)
	const script = "return redis.pcall('SET', KEYS[1], '1')"
	err := c.Eval(t.Context(), script, []string{"k"}).Err()
	require.ErrorIs(t, redisrun.Explain(err), es.ErrOutOfMemory)
}
