package migrate_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/migrate"
)

// counted runs undisturbed, and says how many commands that takes.
func (b *bench) counted(t *testing.T, f run) int {
	t.Helper()
	c := &cut{left: -1}
	result, err := f(t.Context(), b.client(t, c))
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, result.Outcome(), "%v", result.Problems)
	return c.count
}

// killed runs until one of so many commands, at random.
func (b *bench) killed(t *testing.T, f run, commands int, r *rand.Rand) {
	t.Helper()
	rdb := b.client(t, &cut{left: r.IntN(commands), heard: r.IntN(2) == 0})
	result, err := f(t.Context(), rdb)
	require.ErrorIs(t, err, errCut)
	require.Equal(t, migrate.Unfinished, result.Outcome())
	_ = rdb.Close()
}

// reset brings the old store back.
func (b *bench) reset(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	_, err := b.s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.FlushDB(ctx)
		for key, dump := range b.dumps {
			p.Restore(ctx, key, 0, dump)
		}
		return nil
	})
	require.NoError(t, err)
}

// everything is what all keys hold.
func (b *bench) everything(t *testing.T) map[string]any {
	t.Helper()
	ctx, found := t.Context(), map[string]any{}
	for _, key := range b.s.rdb.Keys(ctx, "*").Val() {
		switch b.s.rdb.Type(ctx, key).Val() {
		case "zset":
			found[key] = b.s.rdb.ZRangeWithScores(ctx, key, 0, -1).Val()
		case "set":
			found[key] = slices.Sorted(slices.Values(b.s.rdb.SMembers(ctx, key).Val()))
		case "hash":
			found[key] = b.s.rdb.HGetAll(ctx, key).Val()
		default:
			found[key] = b.s.rdb.Get(ctx, key).Val()
		}
	}
	return found
}

// A thousand kills, at random commands of copy, of rollback and of finish; what goes on
// afterwards ends as if nobody had been killed.
func TestMIG02_AThousandKills(t *testing.T) {
	t.Parallel()
	const kills = 1000
	server := redistest.Standalone(t)
	for i, era := range fixture.Eras[:4] {
		t.Run(era.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, server, i, era)
			for n := range kills / 4 / 2 {
				b.killTwice(t, rand.New(rand.NewPCG(uint64(n), uint64(i))))
			}
		})
	}
}

func (b *bench) killTwice(t *testing.T, r *rand.Rand) {
	t.Helper()
	b.reset(t)
	b.killed(t, b.copy, b.copies, r)
	if r.IntN(3) == 0 && b.began(t) {
		b.killed(t, b.rollback, min(b.returns, 12), r)
		if b.began(t) {
			b.counted(t, b.rollback)
		}
		require.Len(t, b.everything(t), len(b.dumps))
	}
	b.counted(t, b.copy)
	b.counted(t, b.verify)
	b.killed(t, b.finishing, b.finish, r)
	b.counted(t, b.verify)
	b.counted(t, b.finishing)
	b.counted(t, b.verify)
	require.Equal(t, b.want, b.everything(t))
}

func (b *bench) began(t *testing.T) bool {
	t.Helper()
	return len(b.s.rdb.Keys(t.Context(), "headwater:*").Val()) > 0
}
