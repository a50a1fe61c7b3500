package headwater_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const importsHead = `# Who imports whom

Made by ` + "`make docs`" + ` from ` + "`go list`" + `; a test compares it with the code. A box is a folder with the packages in it;
arrows are the imports of code, without those of tests. Arrows point down, to a lower floor, but for
the few helpers that may be imported from their own floor (architecture_test.go has the rules).
Arrows to the ground floor are left out of the drawing, since nearly all would lead to es; the table has them.

`

func TestImportsPageIsCurrent(t *testing.T) {
	t.Parallel()
	graph := importGraph(list(t))
	require.NotEmpty(t, graph["aggregate"])
	holdPage(t, "docs/imports.md", importsHead+drawing(graph)+"\n"+importsTable(graph))
}

// importGraph has each folder of the floors that holds packages, and the folders that it imports, sorted.
func importGraph(packages []pkg) map[string][]string {
	graph := map[string][]string{}
	for _, p := range packages {
		from, floor := locate(inModule(p.ImportPath))
		if floor == 0 {
			continue
		}
		for _, i := range p.Imports {
			if to, toFloor := locate(inModule(i)); toFloor != 0 && to != from {
				graph[from] = append(graph[from], to)
			}
		}
		slices.Sort(graph[from])
		graph[from] = slices.Compact(graph[from])
	}
	return graph
}

func drawing(graph map[string][]string) string {
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for i, units := range slices.Backward(floors) {
		fmt.Fprintf(&b, "  subgraph floor%d[floor %d]\n", i+1, i+1)
		for _, u := range here(graph, units) {
			fmt.Fprintf(&b, "    %s[%s]\n", box(u), u)
		}
		b.WriteString("  end\n")
	}
	for _, units := range slices.Backward(floors) {
		for _, from := range here(graph, units) {
			for _, to := range graph[from] {
				if _, floor := locate(to); floor > 1 {
					fmt.Fprintf(&b, "  %s --> %s\n", box(from), box(to))
				}
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

func importsTable(graph map[string][]string) string {
	var b strings.Builder
	b.WriteString("| floor | folder | imports |\n| --- | --- | --- |\n")
	for i, units := range slices.Backward(floors) {
		for _, u := range here(graph, units) {
			imports := strings.Join(graph[u], ", ")
			if imports == "" {
				imports = "nothing of Headwater"
			}
			fmt.Fprintf(&b, "| %d | %s | %s |\n", i+1, u, imports)
		}
	}
	return b.String()
}

// here is which of the units hold packages today: a floor may name some that are still to come.
func here(graph map[string][]string, units []string) []string {
	return slices.DeleteFunc(slices.Clone(units), func(u string) bool {
		_, ok := graph[u]
		return !ok
	})
}

// box is a name that the drawing takes: one without slashes.
func box(unit string) string { return strings.ReplaceAll(unit, "/", "_") }

// Code that imports something new makes the page another one.
func TestImportsPageShowsEachImport(t *testing.T) {
	t.Parallel()
	ours := func(path string) string { return module + "/" + path }
	graph := importGraph([]pkg{
		{ImportPath: ours("es")},
		{ImportPath: ours("wire"), Imports: []string{ours("es"), "fmt"}},
		{ImportPath: ours("eventstore"), Imports: []string{ours("internal/redisrun"), ours("wire"), ours("es")}},
		{ImportPath: ours("internal/redisrun")},
		{ImportPath: ours("cmd/headwater/internal/cli"), Imports: []string{ours("cmd/headwater/internal/doctor"), ours("wire")}},
		{ImportPath: ours("cmd/headwater"), Imports: []string{ours("cmd/headwater/internal/cli")}},
	})
	require.Equal(t, map[string][]string{
		"es": nil, "wire": {"es"}, "internal/redisrun": nil,
		"eventstore": {"es", "internal/redisrun", "wire"}, "cmd": {"wire"},
	}, graph)
	require.Contains(t, drawing(graph), "eventstore --> internal_redisrun\n")
	require.NotContains(t, drawing(graph), "--> es\n")
	require.Contains(t, importsTable(graph), "| 4 | eventstore | es, internal/redisrun, wire |\n")
	require.Contains(t, importsTable(graph), "| 1 | es | nothing of Headwater |\n")
}
