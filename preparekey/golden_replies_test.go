package preparekey_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// replyPolicies are the calls that ours answers otherwise, by their place.
var replyPolicies = map[string]string{
	"rollback at ttlAt == now/2":         "a reservation is over from the very millisecond of its end, for every operation",
	"reprepare replies/0":                "a free key is not reprepared",
	"reprepare with old value replies/1": "a free key is not reprepared",
	"rollback with old value replies/1":  "a free key is not reprepared",
}

func TestGoldenScriptReplies(t *testing.T) {
	t.Parallel()
	replies := readScripts(t).RawReplies
	require.Len(t, replies, 6)
	unused := maps.Clone(replyPolicies)
	for _, r := range replies {
		t.Run(r.What, func(t *testing.T) {
			f := newFrozen(t)
			for i, call := range r.Calls {
				at := fmt.Sprintf("%s/%d", r.What, i)
				answer := f.callLikeWows(call, at)
				if _, ok := replyPolicies[at]; ok {
					delete(unused, at)
					require.Equal(t, 1, call.Reply.Integer, "%s: no difference to name", at)
					require.Equal(t, "free", answer, at)
					f.catchUp(call)
					continue
				}
				if call.Reply.Nil {
					require.Contains(t, []any{"held", "free", "other"}, answer, at)
					continue
				}
				require.Equal(t, 1, call.Reply.Integer)
				require.Equal(t, "done", answer, at)
			}
			want := map[string]string{}
			for _, k := range r.Keyspace {
				require.Equal(t, "p", k.Key)
				want = k.Fields
			}
			require.Equal(t, want, fields(t, f.rdb, f.key))
		})
	}
	require.Empty(t, unused)
}

// callLikeWows calls the script of ours that a call of Wow's stands for. Wow sends the
// time and the end; ours is told how long, and takes the time from the server, which
// here stands still: at the time sent, or at 100 where none is.
func (f frozen) callLikeWows(c rawCall, token string) any {
	f.t.Helper()
	const now = 100
	a := c.Args
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		require.NoError(f.t, err)
		return n
	}
	lasts := func(end string, now int64) string { return strconv.FormatInt(number(end)-now, 10) }
	switch c.Script {
	case "prepare_prepare":
		return f.run("prepare_key", number(a[0]), a[2], lasts(a[1], number(a[0])), token)
	case "prepare_reprepare":
		return f.run("reprepare_key", now, a[1], lasts(a[0], now), token)
	case "prepare_reprepare_with_old_value":
		return f.run("reprepare_key", now, a[1], lasts(a[0], now), token, a[2])
	case "prepare_rollback":
		return f.run("rollback_key", number(a[0]), token)
	case "prepare_rollback_with_old_value":
		return f.run("rollback_key", now, token, a[0])
	}
	require.Fail(f.t, "unknown script", c.Script)
	return nil
}

// catchUp stores what Wow stored where ours refused, so that the calls that follow
// start from what theirs did.
func (f frozen) catchUp(c rawCall) {
	f.t.Helper()
	if c.Script == "prepare_reprepare" {
		plant(f.t, f.rdb, f.key, c.Args[1], c.Args[0])
		return
	}
	require.Equal(f.t, "prepare_rollback", c.Script)
	require.NoError(f.t, f.rdb.Del(f.t.Context(), f.key).Err())
}
