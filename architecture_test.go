// Package headwater_test holds the import graph to the README's map.
package headwater_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module    = "github.com/headwater-go/headwater"
	goRedis   = "github.com/redis/go-redis"
	testify   = "github.com/stretchr/testify"
	miniredis = "github.com/alicebob/miniredis"
)

// floors are the layers that imports point down, the ground floor first. A folder stands for all
// packages in it, which may import each other.
var floors = [][]string{
	{"es", "lua"},
	{"wire", "aggregate", "projection", "saga", "service", "memory"},
	{
		"internal/rediskey", "internal/redisrun", "internal/legacy", "internal/redisurl", "internal/redisstream",
		"internal/shard", "internal/redistest", "recovery", "estest",
	},
	{
		"commandbus", "eventbus", "statebus", "messaging", "partition", "eventstore", "snapshot", "preparekey",
		"readmodel", "schedule", "migrate",
	},
	{"cmd", "observe", "examples", "internal/soak"},
}

var (
	// shared packages may be imported from their own floor.
	shared = []string{"internal/rediskey", "internal/redisrun"}
	// aids may be imported by tests within a package as well. Tests beside it, in package
	// x_test, put parts together as users do, from all floors but the top one.
	aids = []string{"estest", "internal/redistest", "memory"}
	// domain packages know es and nothing else of Headwater.
	domain = []string{"aggregate", "projection", "saga", "service"}
)

// pkg is what go list says of a package.
type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestImportsPointDownTheFloorsOnly(t *testing.T) {
	t.Parallel()
	packages := list(t)
	require.GreaterOrEqual(t, len(packages), 10, "go list has seen the module")
	for _, p := range packages {
		for _, problem := range problems(p) {
			t.Error(problem)
		}
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var packages []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages = append(packages, p)
	}
}

// problems are what is wrong with the imports of p.
func problems(p pkg) []string {
	self := inModule(p.ImportPath)
	if self == "" && len(p.Imports) == 0 {
		return nil // this test's own package, which has no code
	}
	unit, floor := locate(self)
	if floor == 0 {
		return []string{self + " has no floor: give it a row in the map and here"}
	}
	var found []string
	add := func(format string, args ...any) { found = append(found, self+" "+fmt.Sprintf(format, args...)) }
	for _, i := range p.Imports {
		if reason := mayNotImport(unit, floor, i); reason != "" {
			add("imports %s: %s", i, reason)
		}
	}
	for _, i := range p.TestImports {
		if to := inModule(i); to != "" && !slices.Contains(aids, to) {
			if reason := mayNotImportOfOurs(unit, floor, to); reason != "" {
				add("imports %s in a test: %s", i, reason)
			}
		}
	}
	for _, i := range p.XTestImports {
		if to, toFloor := locate(inModule(i)); to != "" && to != unit && (toFloor == 0 || toFloor == len(floors)) {
			add("imports %s in a test: nobody builds on the top floor", i)
		}
	}
	return found
}

// mayNotImport says why the code of a unit may not import path; "" = it may.
func mayNotImport(unit string, floor int, path string) string {
	testing := unit == "estest" || unit == "internal/redistest"
	switch {
	case inModule(path) != "":
		return mayNotImportOfOurs(unit, floor, inModule(path))
	case (within(path, testify) || within(path, "testing")) && !testing:
		return "users would ship it"
	case within(path, miniredis) && unit != "examples" && unit != "cmd":
		return "it is for the examples and the command line"
	case within(path, goRedis) && (unit == "es" || slices.Contains(domain, unit)):
		return "its tests need no Redis"
	case unit == "es" && (within(path, "os") || within(path, "net")):
		return "es does no I/O"
	case unit == "lua" && strings.Contains(path, ".") && !within(path, goRedis):
		return "lua imports go-redis only"
	}
	return ""
}

func mayNotImportOfOurs(unit string, floor int, path string) string {
	to, toFloor := locate(path)
	switch {
	case to == unit:
		return ""
	case toFloor == 0:
		return "it has no floor"
	case toFloor > floor:
		return fmt.Sprintf("floor %d is above floor %d", toFloor, floor)
	case unit == "lua":
		return "lua imports go-redis only"
	case slices.Contains(domain, unit) && to != "es":
		return unit + " imports es alone"
	case to == "estest" || to == "internal/redistest":
		return "it is for tests"
	case toFloor == floor && !slices.Contains(shared, to) && !(unit == "internal/redisstream" && to == "recovery"):
		return fmt.Sprintf("both are on floor %d", floor)
	}
	return ""
}

// inModule is a path within the module, "" for one of another module.
func inModule(path string) string {
	rest, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return rest
}

// locate finds the folder of the map that path is in, and its floor; 0 = none.
func locate(path string) (unit string, floor int) {
	for i, units := range floors {
		for _, u := range units {
			if within(path, u) {
				return u, i + 1
			}
		}
	}
	return path, 0
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// Each rule, broken once.
func TestWrongImportsAreNamed(t *testing.T) {
	t.Parallel()
	ours := func(path string) string { return module + "/" + path }
	for _, c := range []struct{ from, to, problem string }{
		{"newcomer", "fmt", "newcomer has no floor"},
		{"es", "os", "es does no I/O"},
		{"es", "net/http", "es does no I/O"},
		{"es", goRedis + "/v9", "tests need no Redis"},
		{"es", ours("wire"), "floor 2 is above floor 1"},
		{"lua", "golang.org/x/term", "go-redis only"},
		{"lua", ours("es"), "go-redis only"},
		{"aggregate", goRedis + "/v9", "tests need no Redis"},
		{"aggregate", ours("lua"), "imports es alone"},
		{"saga", ours("internal/rediskey"), "floor 3 is above floor 2"},
		{"memory", ours("wire"), "both are on floor 2"},
		{"memory", "testing", "users would ship it"},
		{"wire", testify + "/require", "users would ship it"},
		{"internal/legacy", ours("internal/redisstream"), "both are on floor 3"},
		{"recovery", ours("internal/redisstream"), "both are on floor 3"},
		{"eventstore", ours("snapshot"), "both are on floor 4"},
		{"eventstore", miniredis + "/v2", "for the examples"},
		{"eventstore", ours("estest"), "for tests"},
		{"eventstore", ours("nowhere"), "has no floor"},
		{"cmd/headwater", ours("internal/redistest"), "for tests"},
		{"cmd/headwater", ours("examples/quickstart"), "both are on floor 5"},
	} {
		require.Contains(t, strings.Join(problems(pkg{ImportPath: ours(c.from), Imports: []string{c.to}}), "\n"), c.problem, c)
	}
	inTest := pkg{ImportPath: ours("eventstore"), TestImports: []string{ours("snapshot"), ours("estest"), ours("memory"), testify + "/require"}}
	require.Equal(t, []string{"eventstore imports " + ours("snapshot") + " in a test: both are on floor 4"}, problems(inTest))
	beside := pkg{ImportPath: ours("eventstore"), XTestImports: []string{ours("snapshot"), ours("estest"), ours("cmd/headwater"), testify + "/require"}}
	require.Equal(t, []string{"eventstore imports " + ours("cmd/headwater") + " in a test: nobody builds on the top floor"}, problems(beside))
	for _, c := range []struct{ from, to string }{
		{"internal/redisstream", ours("recovery")},
		{"internal/legacy", ours("internal/rediskey")},
		{"eventstore", ours("internal/redisrun")},
		{"estest", testify + "/require"},
		{"examples/order-service", miniredis + "/v2"},
		{"examples/order-service/shop", ours("examples/order-service/order")},
	} {
		require.Empty(t, problems(pkg{ImportPath: ours(c.from), Imports: []string{c.to}}), c)
	}
}
