package headwater_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the README shows is code that compiles and is tested: each block stands, but for
// its indentation, in an example.
func TestCodeOfTheReadmeIsThatOfExamples(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	require.NotEmpty(t, blocks)
	files, err := filepath.Glob("*/example_test.go")
	require.NoError(t, err)
	var examples strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		examples.WriteString(flat(string(text)))
	}
	for _, b := range blocks {
		require.Contains(t, examples.String(), flat(string(b[1])))
	}
}

// Links into the repository lead somewhere.
func TestLinksOfTheReadmeLeadSomewhere(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	links := regexp.MustCompile(`\]\(([^)#:, ]+)\)`).FindAllSubmatch(readme, -1)
	require.NotEmpty(t, links)
	for _, l := range links {
		require.FileExists(t, string(l[1]))
	}
}

// flat takes the indentation off each line.
func flat(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimSpace(line))
		b.WriteByte('\n')
	}
	return b.String()
}
