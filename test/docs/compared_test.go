package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArrayCallsAreCompared: every call of arrays and matrices stands in the tests that compare it with the same on ordinary memory.
func TestArrayCallsAreCompared(t *testing.T) {
	api, err := os.ReadFile("../../docs/api.txt")
	require.NoError(t, err)
	around := []string{"NewArray", "NewMatrix", "New", "Fence", "Free", "Team", "Window", "String"} // make, order and name what is compared
	for _, c := range []struct {
		dir   string
		what  string
		files []string
		as    func(name string) string // how a test of it reads
		by    map[string]string        // calls that are compared in the test of another
	}{
		{"pgas", "Array", []string{"slice"}, func(name string) string { return `"` + name + `": func(` }, map[string]string{
			"Index": "Owner", "Range": "Owner", "Local": "Owner", "Mine": "Owner",
		}},
		{"pgas", "Matrix", []string{"matrix", "matrix_ops", "periodic"}, func(name string) string { return "." + name + "(" }, nil},
		{"pgas/grid", "Array", []string{"model", "whole"}, func(name string) string { return "." + name + "(" }, nil},
	} {
		var tests strings.Builder
		for _, f := range c.files {
			text, err := os.ReadFile("../../" + c.dir + "/" + f + "_test.go")
			require.NoError(t, err)
			tests.Write(text)
		}
		calls := regexp.MustCompile(`(?m)^`+c.dir+`: (?:method \(\*`+c.what+`\[T\]\) (\w+)|func (\w+)\[.*(?:\*`+c.what+`|elements)\[T\])`).
			FindAllStringSubmatch(string(api), -1)
		require.Greater(t, len(calls), 20)
		for _, m := range calls {
			name := m[1] + m[2]
			if with := c.by[name]; with != "" {
				require.Contains(t, tests.String(), "."+name+"(", "%s.%s", c.what, name)
				name = with
			}
			if !slices.Contains(around, name) && !strings.Contains(tests.String(), c.as(name)) {
				t.Errorf("%s.%s is compared in none of %v", c.what, name, c.files)
			}
		}
	}
}
