package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/legacy/fixture"
	"github.com/headwater-go/headwater/migrate"
)

func TestAuditOfEveryEra(t *testing.T) {
	t.Parallel()
	for _, era := range fixture.Eras[:4] {
		t.Run(era.String(), func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(t *testing.T, s *scene) {
				s.write(t, era)
				report, err := s.audit().Run(t.Context(), s.rdb, file(t))
				require.NoError(t, err)
				require.Empty(t, codes(report.Problems), "%v", report.Problems)
				require.Equal(t, migrate.Migratable, report.Outcome())
				t.Log(report.Inventory)
			})
		})
	}
}
