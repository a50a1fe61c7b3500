package migrate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/migrate"
)

// scene is a database of the test's own, and a type in it.
type scene struct {
	rdb redis.UniversalClient
	typ es.AggregateType
	// pace holds nothing back.
	pace migrate.Pace
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return &scene{redistest.Standalone(t).Client(t), typeOf(t), migrate.Pace{Rate: 1e9}}
}

func typeOf(t *testing.T) es.AggregateType {
	t.Helper()
	name := strings.NewReplacer("/", "-", "#", "-").Replace(t.Name())
	return es.AggregateType{Context: name + "-service", Alias: name, Name: "order"}
}

// everywhere runs a test on a server and on a cluster of three masters, which other tests
// share: there only this test's types are looked at.
func everywhere(t *testing.T, run func(t *testing.T, s *scene)) {
	t.Helper()
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		run(t, newScene(t))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		run(t, &scene{redistest.SharedCluster(t).Client(t), typeOf(t), migrate.Pace{Rate: 1e9}})
	})
}

func (s *scene) audit() migrate.Audit {
	return migrate.Audit{Pace: s.pace, Types: []es.AggregateType{s.typ}}
}

// write writes aggregates with ugly ids, of one to five commits each.
func (s *scene) write(t *testing.T, era legacy.Eras) (ids []es.AggregateID) {
	t.Helper()
	for i, id := range fixture.Ugly {
		id := s.typ.ID(id).InTenant([]string{"(0)", "t@{1}:", "租户"}[i%3])
		require.NoError(t, fixture.Write(t.Context(), s.rdb, era, id, 1+i%5))
		ids = append(ids, id)
	}
	return ids
}

func file(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "manifest"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// codes are the codes of a report's problems that are of this test's types.
func codes(p migrate.Problems) map[migrate.Code]int {
	found := map[migrate.Code]int{}
	for c, n := range p.ByCode {
		if c != migrate.OtherType && c != migrate.OtherDatabase {
			found[c] = n
		}
	}
	return found
}

func names(t *testing.T, lines ...string) migrate.Names {
	t.Helper()
	n, err := migrate.ParseNames(strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	return n
}
