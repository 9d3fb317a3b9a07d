package docs_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// functions returns the names of the functions in the tests of a folder.
func functions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, f := range parsed(t, dir).tests {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

// TestFeatures: the table is whole, a claim of ours has a test that exists, and what is missing has a reason.
func TestFeatures(t *testing.T) {
	const systems = 14
	known := map[string]map[string]bool{}
	test := regexp.MustCompile("^`([a-z/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`$")
	var features []string
	for _, row := range table(text(t, "docs/features.md"), "feature", "ours", "SHM") {
		if strings.HasPrefix(row[0], "**") {
			continue // a heading
		}
		features = append(features, row[0])
		require.Len(t, row, 1+1+systems+2, row[0])
		for _, mark := range row[1 : 2+systems] {
			require.Contains(t, []string{"✓", "◐", "✗"}, mark, row[0])
		}
		ours, tests, how := row[1], strings.Fields(row[2+systems]), row[3+systems]
		if ours == "✗" {
			require.Empty(t, tests, "%s: a test of what is not there", row[0])
		} else {
			require.NotEmpty(t, tests, "%s: no test", row[0])
		}
		if ours != "✓" {
			require.NotEmpty(t, how, "%s: no reason", row[0])
		}
		for _, name := range tests {
			m := test.FindStringSubmatch(name)
			require.NotNil(t, m, "%s: %s is not folder.TestName", row[0], name)
			if known[m[1]] == nil {
				known[m[1]] = functions(t, m[1])
			}
			if !known[m[1]][m[2]] {
				t.Errorf("%s: there is no %s", row[0], name)
			}
		}
	}
	require.Len(t, features, 86)
	slices.Sort(features)
	require.Len(t, slices.Compact(features), 86)
}
