package headwater_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const casesHead = `# Cases

What went wrong in other systems, and what Headwater does instead. Each case has an id that the
names of its tests begin with. Made by ` + "`make docs`" + ` from the names in the code and the sentences in cases.tsv;
a test compares it with both. Sources are public reports: read them there.

| id | what goes wrong elsewhere | what Headwater does | tests |
| --- | --- | --- | --- |
`

var (
	caseFunction = regexp.MustCompile(`^Test((?:[A-Z]{2,6})\d\d(?:_(?:[A-Z]{2,6})?\d\d)*)_`)
	casePart     = regexp.MustCompile(`^([A-Z]*)(\d\d)$`)
	caseSubtest  = regexp.MustCompile(`^((?:[A-Z]{2,6}-\d\d )+)[^ ]`)
)

func TestCasesPageIsCurrent(t *testing.T) {
	t.Parallel()
	tests := caseTests(t)
	data, err := os.ReadFile("docs/cases.tsv")
	require.NoError(t, err)
	page, problems := casesPage(string(data), tests)
	require.Empty(t, problems, "docs/cases.tsv and the names of tests")
	holdPage(t, "docs/cases.md", page)
}

// casesPage is the page, and what does not fit: an id in a test without its sentences, and the reverse.
func casesPage(tsv string, tests map[string][]string) (page string, problems []string) {
	var b strings.Builder
	b.WriteString(casesHead)
	told := map[string]bool{}
	for line := range strings.Lines(tsv) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 3 || slices.Contains(columns, "") || strings.Contains(line, "|") {
			problems = append(problems, fmt.Sprintf("not an id and two sentences: %q", line))
			continue
		}
		id := columns[0]
		switch {
		case told[id]:
			problems = append(problems, id+" has two lines")
		case len(tests[id]) == 0:
			problems = append(problems, id+" has sentences and no test")
		}
		told[id] = true
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", id, columns[1], columns[2], strings.Join(tests[id], "<br>"))
	}
	for id, names := range tests {
		if !told[id] {
			problems = append(problems, fmt.Sprintf("%s has no sentences: %s", id, names[0]))
		}
	}
	slices.Sort(problems)
	return b.String(), problems
}

// caseTests are the tests of each case, sorted. A test says its case at the beginning of its name.
func caseTests(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		suite := filepath.Dir(path) == "estest" && filepath.Ext(path) == ".go"
		if err != nil || d.IsDir() || !suite && !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == "." {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return addCases(tests, path, text)
	})
	require.NoError(t, err)
	for id, names := range tests {
		slices.Sort(names)
		tests[id] = slices.Compact(names)
	}
	return tests
}

// addCases adds the tests of one file.
func addCases(tests map[string][]string, path string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	folder := filepath.ToSlash(filepath.Dir(path))
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			for _, id := range idsOfFunction(n.Name.Name) {
				tests[id] = append(tests[id], fmt.Sprintf("%s `%s`", folder, n.Name.Name))
			}
		case *ast.BasicLit:
			name, err := strconv.Unquote(n.Value)
			if m := caseSubtest.FindStringSubmatch(name); n.Kind == token.STRING && err == nil && m != nil {
				for id := range strings.FieldsSeq(m[1]) {
					tests[id] = append(tests[id], fmt.Sprintf("%s %q", folder, name))
				}
			}
		}
		return true
	})
	return nil
}

// idsOfFunction reads TestJSON02_10_Name as JSON-02 and JSON-10, TestBIG04_CLI05_Name as BIG-04 and CLI-05.
func idsOfFunction(name string) (ids []string) {
	m := caseFunction.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	area := ""
	for part := range strings.SplitSeq(m[1], "_") {
		p := casePart.FindStringSubmatch(part)
		if p[1] != "" {
			area = p[1]
		}
		ids = append(ids, area+"-"+p[2])
	}
	return ids
}

func TestCasesPageNamesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{}
	source := "package p\nfunc TestABC01_02_XYZ03_Name() {\n_ = \"XYZ-03 ABC-04 a subtest\"\n_ = \"ABC-05: no subtest\"\n}\nfunc TestABCD_Name() {}\n"
	require.NoError(t, addCases(tests, "some/p_test.go", []byte(source)))
	function, subtest := "some `TestABC01_02_XYZ03_Name`", `some "XYZ-03 ABC-04 a subtest"`
	require.Equal(t, map[string][]string{"ABC-01": {function}, "ABC-02": {function}, "XYZ-03": {function, subtest}, "ABC-04": {subtest}}, tests)

	page, problems := casesPage("ABC-01\twrong\tright\nABC-02\twrong\tright\nABC-02\twrong\tright\nABC-04\twrong\nABC-09\twrong\tright\n", tests)
	require.Equal(t, []string{
		"ABC-02 has two lines",
		"ABC-04 has no sentences: " + subtest,
		"ABC-09 has sentences and no test",
		"XYZ-03 has no sentences: " + function,
		`not an id and two sentences: "ABC-04\twrong\n"`,
	}, problems)
	require.Contains(t, page, "| ABC-01 | wrong | right | "+function+" |\n")
}
