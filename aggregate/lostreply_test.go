package aggregate_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
)

// proxied is a site on the shared server or cluster, reached through proxies.
func proxied(t *testing.T, kind string, edit func(*redis.Options)) (site, []*redistest.Proxy) {
	t.Helper()
	if kind == "cluster" {
		rdb, proxies := redistest.ProxyCluster(t, redistest.SharedCluster(t))
		return newSite(rdb), proxies
	}
	p := redistest.NewProxy(t, redistest.Shared(t).Addr)
	o := redistest.Shared(t).Options()
	o.Addr = p.Addr
	edit(o)
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return newSite(rdb), []*redistest.Proxy{p}
}

func asItIs(*redis.Options) {}

// onceOnly sends each command once and waits no longer than a moment for its reply.
func onceOnly(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, 200*time.Millisecond }

// losing makes every proxy lose the reply to the next script, and says how many did.
func losing(proxies []*redistest.Proxy, lose func(*redistest.Proxy, string)) (lost func() int) {
	for _, p := range proxies {
		lose(p, "EVALSHA")
	}
	return func() int {
		n := len(proxies)
		for _, p := range proxies {
			n -= p.Pending()
		}
		return n
	}
}

func TestSTO02_LostReplyIsASuccessThatHappenedOnce(t *testing.T) {
	t.Parallel()
	drop, swallow := (*redistest.Proxy).DropReply, (*redistest.Proxy).SwallowReply
	for what, f := range map[string]struct {
		kind      string
		edit      func(*redis.Options)
		lose      func(*redistest.Proxy, string)
		duplicate bool
	}{
		"closed, the client sends again":  {"standalone", asItIs, drop, false},
		"closed, the kernel tries again":  {"standalone", onceOnly, drop, true},
		"swallowed, the kernel tries it":  {"standalone", onceOnly, swallow, true},
		"closed, cluster":                 {"cluster", asItIs, drop, false},
		"swallowed, the client sends two": {"standalone", func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond }, swallow, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, proxies := proxied(t, f.kind, f.edit)
			r, id := s.repository(), s.typ.ID("c-1")
			r.Snapshots = nil
			grow(t, r, id, 1)
			lost := losing(proxies, f.lose)
			c := es.NewCommand(id, add{5})
			c.ID = "command-5"
			require.Equal(t, es.Result{Aggregate: id, Version: 2, Duplicate: f.duplicate}, handle(t, r, c))
			require.Equal(t, 1, lost(), "a reply was lost")
			requireAt(t, r, id, 2, 6)
			require.Equal(t, es.Result{Aggregate: id, Version: 2, Duplicate: true}, handle(t, r, c))
			requireAt(t, r, id, 2, 6)
		})
	}
}

func TestSTO03_SameRequestLaterIsADuplicateWithItsVersion(t *testing.T) {
	onRedis(t, func(t *testing.T, s site) {
		id := s.typ.ID("c-1")
		create := es.NewCreateCommand(id, add{4})
		create.ID, create.RequestID = "create", "r1"
		handle(t, s.repository(), create)
		grow(t, s.repository(), id, 8)
		v, err := s.snapshots.Version(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, 9, v, "there is a snapshot")

		again := es.NewCommand(id, add{4})
		again.ID, again.RequestID = "another message", "r1"
		for name, c := range map[string]es.Command{"the same command": create, "the same request": again} {
			for range 2 {
				require.Equal(t, es.Result{Aggregate: id, Version: 1, Duplicate: true}, handle(t, s.repository(), c), name)
			}
		}
		requireAt(t, s.repository(), id, 9, 12)

		elsewhere := again
		elsewhere.Aggregate, elsewhere.AllowCreate = s.typ.ID("c-2"), true
		require.Equal(t, es.Result{Aggregate: elsewhere.Aggregate, Version: 1}, handle(t, s.repository(), elsewhere), "request ids are the aggregate's own")
	})
}

func TestTransportErrorOfALoadIsReturned(t *testing.T) {
	t.Parallel()
	s, proxies := proxied(t, "standalone", onceOnly)
	r, id := s.repository(), s.typ.ID("c-1")
	r.Attempts = 2
	grow(t, r, id, 4)
	proxies[0].Cut()
	reads := proxies[0].Count("ZRANGEBYSCORE")
	_, err := r.Load(t.Context(), id)
	require.ErrorIs(t, err, es.ErrUncertain)
	_, err = r.Handle(t.Context(), es.NewCommand(id, add{1}))
	require.ErrorIs(t, err, es.ErrUncertain)
	require.NotErrorIs(t, err, es.ErrRefused)
	proxies[0].Heal()
	requireAt(t, r, id, 4, 4)
	require.Equal(t, reads+1, proxies[0].Count("ZRANGEBYSCORE"), "nothing was replayed meanwhile")
}
