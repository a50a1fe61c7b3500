package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/cmd/headwater/internal/cli"
	"github.com/headwater-go/headwater/cmd/headwater/internal/doctor"
)

const docs = "../../../../docs"

// The pages in docs are what the commands say of themselves; -update writes them.
func TestPagesAreCurrent(t *testing.T) {
	t.Parallel()
	pages := cli.HelpPages()
	require.Greater(t, len(pages), 20)
	if *update {
		require.NoError(t, os.RemoveAll(filepath.Join(docs, "cli")))
		require.NoError(t, os.MkdirAll(filepath.Join(docs, "cli"), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(docs, "doctor.md"), []byte(doctor.Markdown()), 0o600))
	}
	for name, want := range pages {
		path := filepath.Join(docs, "cli", name)
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err, "run the test with -update")
		require.Equal(t, want, string(got), "%s is out of date: run the test with -update", name)
	}
	files, err := filepath.Glob(filepath.Join(docs, "cli", "*.md"))
	require.NoError(t, err)
	require.Len(t, files, len(pages), "no page of a command that is gone")
	got, err := os.ReadFile(filepath.Join(docs, "doctor.md"))
	require.NoError(t, err)
	require.Equal(t, doctor.Markdown(), string(got))
}

// Every code that the checks use has a page, and every page is used.
func TestEveryCodeHasAPage(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	files, err := filepath.Glob("../doctor/*.go")
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`"(HW\d{3})"`).FindAllSubmatch(text, -1) {
			used[string(m[1])] = true
		}
	}
	for _, p := range doctor.Pages() {
		require.True(t, used[p.Code], p.Code)
		delete(used, p.Code)
	}
	require.Empty(t, used)
}

// Every command of the tree has a session in testdata.
func TestEveryCommandHasAGoldenOutput(t *testing.T) {
	t.Parallel()
	golden := ""
	files, err := filepath.Glob("testdata/*.golden")
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		golden += string(text)
	}
	var commands []string
	for _, c := range cli.Root().Commands() {
		subs := []string{c.CommandPath()}
		if c.HasSubCommands() && c.Name() != "doctor" {
			subs = nil
		}
		for _, s := range c.Commands() {
			subs = append(subs, s.CommandPath())
		}
		commands = append(commands, subs...)
	}
	slices.Sort(commands)
	require.Greater(t, len(commands), 20)
	for _, c := range commands {
		require.True(t, strings.Contains(golden, "$ "+c), c) //nolint:testifylint // the whole text helps nobody
	}
}
