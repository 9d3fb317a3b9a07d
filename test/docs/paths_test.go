package docs_test

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runners are the functions that tests run ranks by, and over what: the words of the column "over" in docs/features.md, which explains them.
var runners = map[string][]string{
	"pgastest.Each":           {"all", "sim"},
	"pgastest.EachReal":       {"all"},
	"pgastest.Paths":          {"all"},
	"pgastest.PathsOf":        {"all"},
	"pgastest.Fabrics":        {"nic"},
	"transporttest.NewFabric": {"nic"},
	"pgastest.RunSim":         {"sim"},
	"pgastest.SimErrors":      {"sim"},
	"pgastest.Run":            {"mapped"},
	"pgastest.OverPaths":      {"mapped", "nic"},
	"program.InWorlds":        {"mapped", "nic"},
	"pgastest.RunProcs":       {"procs"},
	"pgastest.RunProcsConfig": {"procs"},
	"pgastest.StartProcs":     {"procs"},
	"pgastest.ProcPaths":      {"procs"},
	"launch.Run":              {"procs"},
	"exec.Command":            {"procs"},
	"exec.CommandContext":     {"procs"},
}

// launchers are the folders whose tests have ranks as processes, in ways of their own.
var launchers = []string{"cmd/pgasrun", "internal/launch"}

// words is the column's order.
var words = []string{"all", "mapped", "nic", "sim", "procs"}

// overOf is what a function's own body runs ranks over. RunConfig and Errors take a configuration, which says so where it names a NIC.
func overOf(body ast.Node) map[string]bool {
	over := map[string]bool{}
	configured, named := false, false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				for _, w := range runners[x.Name+"."+n.Sel.Name] {
					over[w] = true
				}
				configured = configured || x.Name == "pgastest" && (n.Sel.Name == "RunConfig" || n.Sel.Name == "Errors")
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "NIC" || key.Name == "Fabric") {
				named = true
			}
		}
		return true
	})
	switch {
	case !configured || over["all"]:
	case named:
		over["nic"] = true
	default:
		over["mapped"] = true
	}
	return over
}

// over returns what a test of a folder runs ranks over: itself, or by functions beside it, called or handed on.
func over(t *testing.T, dir, test string) map[string]bool {
	t.Helper()
	bodies := map[string]ast.Node{}
	for _, f := range parsed(t, dir).tests {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Body != nil {
					bodies[d.Name.Name] = d.Body
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						for _, name := range v.Names {
							bodies[name.Name] = v
						}
					}
				}
			}
		}
	}
	all, seen := map[string]bool{"procs": slices.Contains(launchers, dir)}, map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] || bodies[name] == nil {
			return
		}
		seen[name] = true
		maps.Copy(all, overOf(bodies[name]))
		ast.Inspect(bodies[name], func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				visit(id.Name)
			}
			return true
		})
	}
	require.NotNil(t, bodies[test], "%s has no %s", dir, test)
	visit(test)
	return all
}

// column is how the table writes what a row's tests run over.
func column(over map[string]bool) string {
	var out []string
	for _, w := range words {
		if over[w] && (w == "all" || !over["all"] || w == "sim" || w == "procs") { // all has the others
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return "–"
	}
	return strings.Join(out, ", ")
}

// TestOver: the column says over what the tests of a row run, as their sources have it. It is made anew with -update.
func TestOver(t *testing.T) {
	const tests, at, page = 16, 17, "docs/features.md"
	lines := strings.Split(text(t, page), "\n")
	for i, line := range lines {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != at+2 || !strings.Contains(cells[tests], "`") {
			continue
		}
		all := map[string]bool{}
		for name := range strings.FieldsSeq(cells[tests]) {
			dir, test, ok := strings.Cut(strings.Trim(name, "`"), ".")
			require.True(t, ok, name)
			maps.Copy(all, over(t, dir, test))
		}
		want := column(all)
		if *updateGolden {
			cells[at] = " " + want + " "
			lines[i] = "|" + strings.Join(cells, "|") + "|"
			continue
		}
		if have := strings.TrimSpace(cells[at]); have != want {
			t.Errorf("%s: over %s, and should be %s; go test ./test/docs -run '^TestOver$' -update", strings.TrimSpace(cells[0]), have, want)
		}
	}
	if *updateGolden {
		require.NoError(t, os.WriteFile(filepath.Join(root, page), []byte(strings.Join(lines, "\n")), 0o644))
	}
}

// TestOverIsFound: in tests as they are written here.
func TestOverIsFound(t *testing.T) {
	for test, want := range map[string]string{
		"sync.TestBarrierSeparates":        "all",
		"pgas.TestArrayPutGetAcrossOwners": "all, sim",
		"internal/shape.TestShapes":        "–",
		"sync.TestLevelsOfRealNodes":       "procs",
		"pgas/pgastest.TestHangIsReported": "mapped",
		"cmd/pgasrun.TestStatistics":       "procs",
		"bootstrap.TestAlone":              "–",
	} {
		dir, name, _ := strings.Cut(test, ".")
		require.Equal(t, want, column(over(t, dir, name)), test)
	}
}
