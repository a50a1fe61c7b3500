package snapshot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/lua"
)

type messageVectors struct {
	Snapshots []struct {
		What, Key, Value string
		Version          int
	}
	Reading []struct {
		What, Doc string
		Accepted  bool
		Version   int
	}
}

// save runs the guard on a key of any name.
func save(t testing.TB, rdb redis.Scripter, key string, version int, value string) string {
	t.Helper()
	reply, err := lua.SaveSnapshot.Run(t.Context(), rdb, []string{key}, version, value)
	require.NoError(t, err)
	answer, ok := reply.(string)
	require.True(t, ok, "%T", reply)
	return answer
}

// requireGuard wants the guard to see exactly this version in what is stored.
func requireGuard(t testing.TB, rdb redis.Cmdable, key, value string, version int) {
	t.Helper()
	require.NoError(t, rdb.Set(t.Context(), key, value, 0).Err())
	require.Equal(t, "Ignored", save(t, rdb, key, version-1, "older"))
	require.Equal(t, value, rdb.Get(t.Context(), key).Val())
	require.Equal(t, "Ok", save(t, rdb, key, version, "equal"))
	require.Equal(t, "equal", rdb.Get(t.Context(), key).Val())
}

func TestGuardFindsTheVersionOfEverySnapshotThatWowWrote(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	v := vectors[messageVectors](t, "messages.json")
	require.Len(t, v.Snapshots, 14)
	for _, s := range v.Snapshots {
		key := "golden:" + s.Key
		requireGuard(t, rdb, key, s.Value, s.Version)

		// Without its tail only the head can show the version; an escape hides it there.
		head, _, ok := strings.Cut(s.Value, `"eventId"`)
		require.True(t, ok)
		if strings.Contains(head, `\`) {
			require.NoError(t, rdb.Set(t.Context(), key, head, 0).Err())
			require.Equal(t, "Unreadable", save(t, rdb, key, s.Version, "x"), s.What)
		} else {
			requireGuard(t, rdb, key, head, s.Version)
		}
	}
}

// What Wow takes for a snapshot and its own guard refuses, or sees otherwise.
var guardDiffers = map[string]string{
	"version null":                     "Wow reads 0; its guard and ours know no version",
	"version 2.9":                      "Wow reads 2; its guard and ours compare 2.9",
	"escaped lone surrogate in string": "Jackson takes it; cjson does not, in Wow's guard as in ours",
}

func TestGuardAgreesWithWowsReader(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	seen := 0
	for i, r := range vectors[messageVectors](t, "messages.json").Reading {
		key := fmt.Sprintf("golden:reading:%d", i)
		_, differs := guardDiffers[r.What]
		switch {
		case differs:
			seen++
			require.NoError(t, rdb.Set(t.Context(), key, r.Doc, 0).Err())
			require.NotEqual(t, "Ok", save(t, rdb, key, r.Version, "x"), r.What)
		case r.Accepted:
			requireGuard(t, rdb, key, r.Doc, r.Version)
		}
	}
	require.Len(t, guardDiffers, seen)
}

func TestGuardAnswersAsWowsScript(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	type reply struct{ Bulk, Error string }
	v := vectors[struct {
		RawReplies []struct {
			Calls []struct {
				Keys  []string
				Args  []string
				Reply reply
			}
			Keyspace []struct{ Key, Value string }
		}
	}](t, "scripts.json")
	require.Len(t, v.RawReplies, 1)
	for _, k := range v.RawReplies[0].Keyspace {
		require.NoError(t, rdb.Del(t.Context(), k.Key).Err())
	}
	for _, call := range v.RawReplies[0].Calls {
		got, err := lua.SaveSnapshot.Run(t.Context(), rdb, call.Keys, call.Args[0], call.Args[1])
		require.NoError(t, err)
		want := call.Reply.Bulk
		if call.Reply.Error != "" {
			want = "Unreadable" // a word, not an error raised by cjson
		}
		require.Equal(t, want, got)
	}
	for _, k := range v.RawReplies[0].Keyspace {
		require.Equal(t, k.Value, rdb.Get(t.Context(), k.Key).Val())
	}
}
