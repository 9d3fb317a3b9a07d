package docs_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tested are the tests of a folder that this system builds, and when each is left out.
func tested(t *testing.T, dir string) map[string]skip {
	t.Helper()
	require.NotRegexp(t, `(^|/)(testdata|[_.])`, dir, "go test ./... passes over this folder")
	own, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "go.mod"))
	require.NoError(t, err)
	require.Empty(t, own, "go test ./... passes over this folder")
	here := build.Default
	bodies := map[string]*ast.FuncDecl{}
	for _, f := range parsed(t, dir).tests {
		name := fset.Position(f.Package).Filename
		ok, err := here.MatchFile(filepath.Dir(name), filepath.Base(name))
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, isFunc := d.(*ast.FuncDecl); ok && isFunc && fn.Recv == nil && fn.Body != nil {
				bodies[fn.Name.Name] = fn
			}
		}
	}
	all := map[string]skip{}
	for name, fn := range bodies {
		s := skipOf(fn.Body)
		ast.Inspect(fn.Body, func(n ast.Node) bool { // and of the functions beside it that it calls
			if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && bodies[id.Name] != nil {
					s = max(s, skipOf(bodies[id.Name].Body))
				}
			}
			return true
		})
		all[name] = s
	}
	return all
}

// skip is when a test is left out.
type skip uint8

const (
	never     skip = iota
	whenShort      // make check runs it, make test does not
	sometimes
)

// skipOf looks for calls that leave a test out. SkipUnless is none: it leaves out what a machine has not, and the machines that are tested on have to
// have what the table claims.
func skipOf(body *ast.BlockStmt) skip {
	found := never
	var walk func(n ast.Node, short bool)
	walk = func(n ast.Node, short bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt:
				if cond := types.ExprString(n.Cond); (cond == "testing.Short()" || strings.HasPrefix(cond, "testing.Short() && ")) && n.Init == nil {
					walk(n.Body, true)
					if n.Else != nil {
						walk(n.Else, short)
					}
					return false
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "Skip" || n.Sel.Name == "Skipf" || n.Sel.Name == "SkipNow" {
					if short {
						found = max(found, whenShort)
					} else {
						found = sometimes
					}
				}
			}
			return true
		})
	}
	walk(body, false)
	return found
}

func TestSkipOf(t *testing.T) {
	f, err := parser.ParseFile(fset, "s.go", `package s
		func a(t *testing.T) { t.Log("Skip") }
		func b(t *testing.T) { if testing.Short() { t.Skip("long") }; t.Log() }
		func g(t *testing.T) { if testing.Short() && !fast { t.Skip("long") } }
		func h(t *testing.T) { if testing.Short() || slow { t.Skip("slow") } }
		func c(t *testing.T) { if !testing.Short() { t.Skipf("short %d", 1) } }
		func d(t *testing.T) { t.Run("x", func(t *testing.T) { t.SkipNow() }) }
		func e(t *testing.T) { if testing.Short() { t.Log() } else { t.SkipNow() } }
		func f(t *testing.T) { transporttest.SkipUnless(t, nil) }`, 0)
	require.NoError(t, err)
	var got []skip
	for _, d := range f.Decls {
		got = append(got, skipOf(d.(*ast.FuncDecl).Body))
	}
	require.Equal(t, []skip{never, whenShort, whenShort, sometimes, sometimes, sometimes, sometimes, never}, got)
}

// TestFeatures: the table is whole, a claim of ours has a test that make test runs, and what is missing has a reason. Further tests of a claim may be
// among those that only make check runs; none is left out for another reason.
func TestFeatures(t *testing.T) {
	const systems = 14
	require.Regexp(t, `(?m)^test:.*\n(\t.*\n)*\tgo test [^|;]* \./\.\.\.$`, text(t, "Makefile"))
	known := map[string]map[string]skip{}
	test := regexp.MustCompile("^`([a-z/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`$")
	var features []string
	for _, row := range table(text(t, "docs/features.md"), "feature", "ours", "SHM") {
		if strings.HasPrefix(row[0], "**") {
			continue // a heading
		}
		features = append(features, row[0])
		require.Len(t, row, 1+1+systems+3, row[0])
		for _, mark := range row[1 : 2+systems] {
			require.Contains(t, []string{"✓", "◐", "✗"}, mark, row[0])
		}
		ours, tests, how := row[1], strings.Fields(row[2+systems]), row[4+systems]
		if ours == "✗" {
			require.Empty(t, tests, "%s: a test of what is not there", row[0])
		} else {
			require.NotEmpty(t, tests, "%s: no test", row[0])
		}
		if ours != "✓" {
			require.NotEmpty(t, how, "%s: no reason", row[0])
		}
		least := sometimes
		for _, name := range tests {
			m := test.FindStringSubmatch(name)
			require.NotNil(t, m, "%s: %s is not folder.TestName", row[0], name)
			if known[m[1]] == nil {
				known[m[1]] = tested(t, m[1])
			}
			when, ok := known[m[1]][m[2]]
			if !ok {
				t.Errorf("%s: there is no %s on this system", row[0], name)
			}
			if when == sometimes {
				t.Errorf("%s: %s is left out at times", row[0], name)
			}
			least = min(least, when)
		}
		if len(tests) > 0 && least != never {
			t.Errorf("%s: make test runs none of its tests", row[0])
		}
	}
	require.Len(t, features, 88)
	slices.Sort(features)
	require.Len(t, slices.Compact(features), 88)
}
