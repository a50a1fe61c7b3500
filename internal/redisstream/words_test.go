package redisstream_test

import (
	"crypto/rand"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
)

// A client that looks for a command's key behind a word of its own would find the wrong one.
func TestKEY08_NamesMayBeWordsOfTheCommands(t *testing.T) {
	t.Parallel()
	words := []string{"streams", "group", "block", "count", "noack", ">", "$", "0", "STREAMS"}
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, word := range words {
			c := config(words...)
			c.Group, c.Consumer = word, word
			var seen calls
			r := start(t, rdb, c, seen.handle)
			var sent []string
			for _, topic := range words {
				text := "a|" + rand.Text()
				publish(t, rdb, topic, text)
				sent = append(sent, text)
			}
			eventually(t, "group "+word+" gets all", func() bool {
				for _, text := range sent {
					if seen.count(text) == 0 {
						return false
					}
				}
				return true
			})
			eventually(t, "and acknowledges it", func() bool {
				for _, topic := range words {
					if p, err := rdb.XPending(t.Context(), topic, word).Result(); err != nil || p.Count > 0 {
						return false
					}
				}
				return true
			})
			r.end(t)
			for _, text := range sent {
				require.Equal(t, 1, seen.count(text))
			}
		}
	})
}
