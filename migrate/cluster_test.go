package migrate_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/migrate"
)

// One old key, on each master in turn, among many others.
func TestCLU12_OneOldKeyIsFoundWhereverItIs(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	rdb := c.Client(t)
	typ := typeOf(t)
	_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 20000 {
			p.Set(t.Context(), fmt.Sprintf("other:%d", i), "x", 0)
		}
		return nil
	})
	require.NoError(t, err)
	owners := map[string]bool{}
	for i := 0; len(owners) < 3; i++ {
		id := typ.ID(fmt.Sprintf("*[%d]?", i))
		key := fixture.KeysOf(legacy.B, id).Events
		owner := c.Owner(t, c.Slot(t, key)).Addr
		if owners[owner] {
			continue
		}
		owners[owner] = true
		require.NoError(t, rdb.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: fixture.Commit(legacy.B, id, 1, "{}")}).Err())
		for _, keysOnly := range []bool{false, true} {
			report, err := migrate.Audit{Pace: migrate.Pace{Rate: 1e9}, KeysOnly: keysOnly}.Run(t.Context(), rdb, nil)
			require.NoError(t, err)
			require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
			require.Equal(t, []migrate.Line{{Era: report.Inventory[0].Era, Type: typ.String(), Kind: "events", Keys: 1, Members: 1, Bytes: report.Inventory[0].Bytes}}, report.Inventory)
		}
		require.NoError(t, rdb.Del(t.Context(), key).Err())
	}
	report, err := migrate.Audit{Pace: migrate.Pace{Rate: 1e9}}.Run(t.Context(), rdb, nil)
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, report.Outcome())
	require.Equal(t, int64(20000), report.Scanned)
}

// Slots move while the audit is under way; every key is listed once all the same, and the
// rest of the migration goes on as ever.
func TestCLU06_ReshardingDuringAuditMissesNothing(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	s := &scene{c.Client(t), typeOf(t), migrate.Pace{Rate: 1e9}}
	var ids []es.AggregateID
	for i := range 400 {
		id := s.typ.ID(fmt.Sprintf("o-%d", i))
		require.NoError(t, fixture.Write(t.Context(), s.rdb, legacy.B, id, 1))
		ids = append(ids, id)
	}
	for _, key := range []string{"alice", "bob@{1}", "}{"} {
		require.NoError(t, fixture.Reserve(t.Context(), s.rdb, key, `"u"`, forever))
	}
	// What the first master holds goes behind the other ones' cursors, and the other way round.
	a := s.audit()
	a.Names = names(t, "username\t*")
	a.Progress = onceAfter(1, func() {
		moved := 0
		for _, id := range ids {
			slot := c.Slot(t, fixture.KeysOf(legacy.B, id).Events)
			from := c.Owner(t, slot)
			if moved < 12 {
				to := c.Nodes[0]
				if from == to {
					to = c.Nodes[1+moved%2]
				}
				c.MigrateSlot(t, slot, from, to)
				moved++
			}
		}
	})
	f := file(t)
	report, err := a.Run(t.Context(), s.rdb, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	require.Equal(t, int64(1203), report.Legacy())
	require.Greater(t, report.Scanned, int64(1203), "it walked through the keys again")
	for _, step := range []func(*testing.T, *scene) migrate.Result{
		func(t *testing.T, s *scene) migrate.Result { return s.copy(t, f) },
		func(t *testing.T, s *scene) migrate.Result { return s.verify(t, f) },
		func(t *testing.T, s *scene) migrate.Result { return s.finish(t, f) },
	} {
		r := step(t, s)
		require.Equal(t, migrate.Clean, r.Outcome(), "%v", r.Problems)
		require.Equal(t, []int64{400, 3}, []int64{r.Aggregates, r.Prepared})
	}
}

func onceAfter(calls int, do func()) func(migrate.Progress) {
	once := sync.OnceFunc(do)
	return func(migrate.Progress) {
		if calls--; calls <= 0 {
			once()
		}
	}
}

// A slot that stays on its way keeps the audit from its end: keys in it are in two places.
func TestAuditOfAClusterThatDoesNotSettle(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	from := c.Owner(t, 7)
	to := c.Nodes[0]
	if to == from {
		to = c.Nodes[1]
	}
	m := c.StartMigration(t, 7, from, to)
	a := migrate.Audit{Pace: migrate.Pace{Settle: 300 * time.Millisecond}}
	report, err := a.Run(t.Context(), c.Client(t), nil)
	require.ErrorIs(t, err, es.ErrUnavailable)
	require.ErrorContains(t, err, "[7-")
	require.Equal(t, migrate.Unfinished, report.Outcome())
	m.Finish(t)
	a.Settle = 0
	_, err = a.Run(t.Context(), c.Client(t), nil)
	require.NoError(t, err)
}

func TestCLU12_AMasterThatIsDownIsNamed(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 0)
	s := &scene{c.Client(t), typeOf(t), migrate.Pace{Rate: 1e9, Patience: 200 * time.Millisecond, Settle: 300 * time.Millisecond}}
	s.write(t, legacy.B)
	f := file(t)
	_, err := s.audit().Run(t.Context(), s.rdb, f)
	require.NoError(t, err)
	c.Nodes[1].Kill(t)

	report, err := s.audit().Run(t.Context(), s.rdb, nil)
	require.Equal(t, migrate.Unfinished, report.Outcome())
	var node *migrate.NodeError
	require.ErrorAs(t, err, &node)
	require.Equal(t, c.Nodes[1].Addr, node.Addr)
	result, err := migrate.Copy{Pace: s.pace}.Run(t.Context(), s.rdb, s.rdb, f)
	require.ErrorContains(t, err, c.Nodes[1].Addr)
	require.Equal(t, migrate.Unfinished, result.Outcome())

	c.Nodes[1].Start(t)
}

// The check itself fails: nobody is told that the store is clean.
func TestCLU12_AnAuditThatMayNotLookIsUnfinished(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	s.write(t, legacy.C)
	for _, command := range []string{"scan", "type", "zrange", "info", "smembers", "pttl", "xinfo"} {
		require.NoError(t, s.rdb.Do(ctx, "ACL", "SETUSER", command, "on", ">pw", "~*", "+@all", "-"+command).Err())
		if command == "xinfo" {
			require.NoError(t, s.rdb.XAdd(ctx, &redis.XAddArgs{Stream: s.typ.String() + ":command", Values: []any{"msg", "{}"}}).Err())
		}
		o := *s.rdb.(*redis.Client).Options()
		o.Username, o.Password = command, "pw"
		rdb := redis.NewClient(&o)
		report, err := s.audit().Run(ctx, rdb, file(t))
		require.ErrorContains(t, err, "NOPERM", command)
		require.Equal(t, migrate.Unfinished, report.Outcome())
		require.NoError(t, rdb.Close())
	}
	// Sizes and counts only spare time and memory.
	require.NoError(t, s.rdb.Do(ctx, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@all", "-memory", "-dbsize").Err())
	o := *s.rdb.(*redis.Client).Options()
	o.Username, o.Password = "poor", "pw"
	rdb := redis.NewClient(&o)
	defer rdb.Close() //nolint:errcheck // the test's end
	report, err := s.audit().Run(ctx, rdb, file(t))
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome(), "%v", report.Problems)
	require.Empty(t, codes(report.Problems))
}

func TestClientsThatWouldMissKeysAreRefused(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	single := c.Nodes[0].Client(t)
	_, err := migrate.Audit{}.Run(t.Context(), single, nil)
	require.ErrorIs(t, err, es.ErrInvalid)
	o := c.Options()
	o.ReadOnly = true
	replicas := redis.NewClusterClient(o)
	defer replicas.Close() //nolint:errcheck // the test's end
	_, err = migrate.Audit{}.Run(t.Context(), replicas, nil)
	require.ErrorIs(t, err, es.ErrInvalid)
	pipelined, err := single.AutoPipeline()
	require.NoError(t, err)
	_, err = migrate.Audit{}.Run(t.Context(), pipelined, nil)
	require.ErrorIs(t, err, es.ErrInvalid)
}

// The manifest of one database is refused for another.
func TestEachDatabaseHasItsOwnManifest(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	o := *s.rdb.(*redis.Client).Options()
	o.DB = 5
	five := redis.NewClient(&o)
	defer five.Close() //nolint:errcheck // the test's end
	require.NoError(t, fixture.Write(t.Context(), five, legacy.A, s.typ.ID("o"), 2))
	report, err := s.audit().Run(t.Context(), s.rdb, nil)
	require.NoError(t, err)
	require.Equal(t, migrate.Clean, report.Outcome())
	require.Equal(t, 1, report.ByCode[migrate.OtherDatabase])
	f := file(t)
	report, err = s.audit().Run(t.Context(), five, f)
	require.NoError(t, err)
	require.Equal(t, migrate.Migratable, report.Outcome())
	_, err = migrate.Copy{}.Run(t.Context(), s.rdb, s.rdb, f)
	require.ErrorIs(t, err, es.ErrInvalid)
	r, err := migrate.Copy{}.Run(t.Context(), five, five, f)
	require.NoError(t, err)
	require.Equal(t, int64(2), r.Events)
	require.True(t, strings.HasPrefix(s.typ.Context, "TestEach"))
}
