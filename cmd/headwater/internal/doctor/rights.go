package doctor

import (
	"context"
	"strings"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// needs are the commands of a service, each on a key of its kind.
var needs = strings.Split(strings.TrimSpace(`
ZADD {v2:es:a.b:0}:x 1 m
ZCARD {v2:es:a.b:0}:x
ZRANGEBYSCORE {v2:es:a.b:0}:x 0 1
ZREVRANGE {v2:es:a.b:0}:x 0 0
SADD {v2:es:a.b:0}:x:req_idx m
SISMEMBER {v2:es:a.b:0}:x:req_idx m
ZRANGEBYLEX {v2:es:a.b:0}:ids - +
GET v2:snapshot:{a.b.x}
GETRANGE v2:snapshot:{a.b.x} 0 1
SET v2:snapshot:{a.b.x} v
HSET v2:prepare:{a.b} value v
HGET v2:prepare:{a.b} value
XADD a.b:event * msg m
XGROUP CREATE a.b:event g 0
XREADGROUP GROUP g c STREAMS a.b:event >
XACK a.b:event g 1-1
XPENDING a.b:event g
XCLAIM a.b:event g c 0 1-1
XINFO GROUPS a.b:event
XADD {a.b:event}:dlq * f v
ZADD {a.b:event}:lease:g 1 c
HSET {a.b:event}:failed:g f v
SET wow:redis:message-bus:consumer-lease:h c
EVALSHA h 0
TIME
EXISTS a.b:es:req_idx
`), "\n")

// rights looks at HW030: at what a service needs and the connected user may not do.
func (v *visit) rights(ctx context.Context) {
	args := make([]any, len(needs))
	for i, line := range needs {
		args[i] = line
	}
	answer, err := redisrun.Do(ctx, 0, func() (any, error) { return lua.MayRun.Run(ctx, v.rdb, []string{rediskey.Topics()}, args...) })
	if err != nil {
		v.unable("", "what the user may do", err)
		return
	}
	refused, ok := answer.([]any)
	if !ok {
		return // a server before 7.0 does not tell
	}
	var words []string
	for _, line := range refused {
		text, _ := line.(string)
		parts := strings.Fields(text)
		word := parts[0]
		if len(parts) > 1 {
			word += " on keys such as " + keyOf(parts)
		}
		words = append(words, word)
	}
	if len(words) > 0 {
		v.add("HW030", Warning, "", "as a service, the connected user would lack %s", strings.Join(words, "; "))
	}
}

// keyOf is the key in a command line.
func keyOf(words []string) string {
	for _, w := range words[1:] {
		if strings.ContainsAny(w, ":{") {
			return w
		}
	}
	return words[1]
}
