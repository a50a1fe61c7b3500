package migrate_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/migrate"
)

var errCut = errors.New("the process was killed")

// cut is a process that is killed at its n-th command: of a pipeline only a part gets to
// the server, a transaction gets there whole or not at all, and a single command before
// the end or without its reply being heard. Nothing is sent afterwards.
type cut struct {
	mu    sync.Mutex
	left  int // commands that still get through; negative = all
	count int
	heard bool // the last command is carried out, and its reply is lost
}

// admit says how many of n commands get through.
func (c *cut) admit(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count += n
	if c.left < 0 {
		return n
	}
	admitted := min(n, c.left)
	c.left -= admitted
	return admitted
}

func (c *cut) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *cut) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "hello" || cmd.Name() == "client" {
			return next(ctx, cmd)
		}
		if c.admit(1) == 1 {
			return next(ctx, cmd)
		}
		if c.heard {
			c.heard = false
			_ = next(ctx, cmd)
		}
		cmd.SetErr(errCut)
		return errCut
	}
}

func (c *cut) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "hello" || cmds[0].Name() == "client" {
			return next(ctx, cmds)
		}
		n := c.admit(len(cmds))
		if n == len(cmds) {
			return next(ctx, cmds)
		}
		if cmds[0].Name() == "multi" {
			n = 0
		}
		if n > 0 {
			_ = next(ctx, cmds[:n])
		}
		for _, cmd := range cmds {
			cmd.SetErr(errCut)
		}
		return errCut
	}
}

// bench is a small store of an era, that comes back as it was as often as one likes.
type bench struct {
	s       *scene
	server  *redistest.Server
	db      int
	dumps   map[string]string
	want    map[string]any // what an undisturbed migration ends with
	f       migrate.File
	copies  int // commands of an undisturbed copy, and of the others
	finish  int
	returns int
}

func newBench(t *testing.T, server *redistest.Server, db int, era legacy.Eras) *bench {
	t.Helper()
	b := &bench{server: server, db: db, dumps: map[string]string{}, f: file(t)}
	b.s = &scene{b.client(t, nil), typeOf(t), migrate.Pace{Rate: 1e9}}
	ctx := t.Context()
	for i, id := range []string{"a@b", "{}", "雪😀", "x:req_idx"} {
		require.NoError(t, fixture.Write(ctx, b.s.rdb, era, b.s.typ.ID(id).InTenant([]string{"(0)", "}{"}[i%2]), i+1))
	}
	require.NoError(t, fixture.Reserve(ctx, b.s.rdb, "alice{}", `"u-1"`, 148204944000000))
	for _, key := range b.s.rdb.Keys(ctx, "*").Val() {
		b.dumps[key] = b.s.rdb.Dump(ctx, key).Val()
	}
	a := b.s.audit()
	a.Names = names(t, "username\t*")
	report, err := a.Run(ctx, b.s.rdb, b.f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)

	b.copies = b.counted(t, b.copy)
	b.returns = b.counted(t, b.rollback)
	require.Len(t, b.everything(t), len(b.dumps), "a rollback leaves nothing")
	b.counted(t, b.copy)
	b.counted(t, b.verify)
	b.finish = b.counted(t, b.finishing)
	b.want = b.everything(t)
	require.NotContains(t, b.want, fixture.KeysOf(era, b.s.typ.ID("a@b")).Events)
	return b
}

func (b *bench) client(t *testing.T, c *cut) *redis.Client {
	t.Helper()
	o := b.server.Options()
	o.DB = b.db
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	if c != nil {
		rdb.AddHook(c)
	}
	return rdb
}

type run func(ctx context.Context, rdb redis.UniversalClient) (migrate.Result, error)

func (b *bench) copy(ctx context.Context, rdb redis.UniversalClient) (migrate.Result, error) {
	return migrate.Copy{Pace: b.s.pace}.Run(ctx, rdb, rdb, b.f)
}

func (b *bench) verify(ctx context.Context, rdb redis.UniversalClient) (migrate.Result, error) {
	return migrate.Verify{Pace: b.s.pace}.Run(ctx, rdb, rdb, b.f)
}

func (b *bench) finishing(ctx context.Context, rdb redis.UniversalClient) (migrate.Result, error) {
	return migrate.Finish{Pace: b.s.pace, WritersStopped: true}.Run(ctx, rdb, rdb, b.f)
}

func (b *bench) rollback(ctx context.Context, rdb redis.UniversalClient) (migrate.Result, error) {
	return migrate.Rollback{Pace: b.s.pace}.Run(ctx, rdb, rdb, b.f)
}
