package migrate_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/migrate"
)

// lines are a manifest's lines, but for the end.
func lines(t *testing.T, f *os.File) []string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	require.Contains(t, all[len(all)-1], `"end"`)
	all = all[:len(all)-1]
	slices.Sort(all)
	return all
}

// The audit is killed again and again; the last run ends with the same manifest as one
// that nobody disturbed, and reads nothing twice but what was not written yet.
func TestCLU08_AuditGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	for _, era := range []legacy.Eras{legacy.B, legacy.C, legacy.D} {
		t.Run(era.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.writeMany(t, era, 500)
			whole, all := file(t), &cut{left: -1}
			_, err := s.audit().Run(t.Context(), s.hooked(t, all), whole)
			require.NoError(t, err)
			r := rand.New(rand.NewPCG(1, 2))
			for range 5 {
				f, spent := file(t), 0
				require.NoError(t, appendTo(f, `{"manifest":{"for`))
				for range 3 {
					c := &cut{left: all.count/3 + r.IntN(all.count/3)}
					report, err := s.audit().Run(t.Context(), s.hooked(t, c), f)
					spent = c.count
					if err == nil {
						break
					}
					require.Equal(t, migrate.Unfinished, report.Outcome())
					_, err = migrate.Copy{}.Run(t.Context(), s.rdb, s.rdb, f)
					require.ErrorIs(t, err, es.ErrInvalid, "half a manifest is none")
					require.NoError(t, appendTo(f, `{"record":{"key":"half a li`))
				}
				last := &cut{left: -1}
				report, err := s.audit().Run(t.Context(), s.hooked(t, last), f)
				if err == nil {
					require.Equal(t, migrate.Migratable, report.Outcome())
					spent = last.count
				} else {
					require.ErrorContains(t, err, "complete")
				}
				require.Less(t, spent, all.count*3/4, "most was known already")
				require.Equal(t, lines(t, whole), lines(t, f))
			}
		})
	}
}

// writeMany writes aggregates with one commit each, so that many share a bucket.
func (s *scene) writeMany(t *testing.T, era legacy.Eras, n int) (ids []es.AggregateID) {
	t.Helper()
	for i := range n {
		id := s.typ.ID(fmt.Sprintf("o-%d", i))
		require.NoError(t, fixture.Write(t.Context(), s.rdb, era, id, 1))
		ids = append(ids, id)
	}
	return ids
}

func appendTo(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), size(f))
	return err
}

func size(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func TestAuditGoesOnOnlyWithItsOwnManifest(t *testing.T) {
	t.Parallel()
	s, _, f := audited(t, legacy.C)
	_, err := s.audit().Run(t.Context(), s.rdb, f)
	require.ErrorIs(t, err, es.ErrInvalid, "it is complete")

	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	half := file(t)
	_, err = half.Write(b[:bytes.LastIndexByte(bytes.TrimSpace(b), '\n')+1])
	require.NoError(t, err)
	a := s.audit()
	a.Accept = []migrate.Code{migrate.Gap}
	_, err = a.Run(t.Context(), s.rdb, half)
	require.ErrorIs(t, err, es.ErrInvalid, "the knobs are others")

	other := file(t)
	_, err = other.WriteString("not a manifest\n")
	require.NoError(t, err)
	_, err = s.audit().Run(t.Context(), s.rdb, other)
	require.ErrorIs(t, err, es.ErrInvalid)

	b[bytes.Index(b, []byte(`"count"`))+8]++
	changed := file(t)
	_, err = changed.Write(b)
	require.NoError(t, err)
	_, err = migrate.Copy{}.Run(t.Context(), s.rdb, s.rdb, changed)
	require.ErrorContains(t, err, "changed")
}
