package redisstream_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redisstream"
)

func TestOneLineInTenSecondsForEachCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log lines
		l := redisstream.NewLimiter(log.logger())
		for range 100 { // ten seconds
			l.Warn(t.Context(), "it fails", "topic", "a", "group", "g", "reason", time.Now())
			l.Warn(t.Context(), "it fails", "topic", "b", "group", "g")
			time.Sleep(100 * time.Millisecond) // of the bubble's clock
		}
		require.Equal(t, 2, log.count("\n"))
		l.Warn(t.Context(), "it fails", "topic", "a", "group", "g")
		require.Equal(t, 3, log.count("\n"))
		require.Equal(t, 1, log.count("again=99"))
	})
}
