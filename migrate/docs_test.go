package migrate_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every code has a row in the guide.
func TestTheGuideKnowsEveryCode(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("problem.go")
	require.NoError(t, err)
	guide, err := os.ReadFile("../docs/migration.md")
	require.NoError(t, err)
	found := regexp.MustCompile(`Code = "([a-z0-9-]+)"`).FindAllSubmatch(source, -1)
	require.GreaterOrEqual(t, len(found), 30)
	for _, code := range found {
		require.Contains(t, string(guide), "`"+string(code[1])+"`")
	}
}
