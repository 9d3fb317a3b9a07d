package docs_test

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamples: every exported type of a public package has an Example in the package's tests: one that is named for it, or one
// with a value of it. go test compares what each of them prints.
func TestExamples(t *testing.T) {
	packages := public(t)
	require.Contains(t, packages, "window")
	require.Equal(t, "pgsync", packages["sync"])
	imports := compiled(t, slices.Sorted(maps.Keys(packages)))
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		src := parsed(t, dir)
		shown := map[string]bool{}
		for _, f := range src.tests {
			examples := 0
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Example") {
					continue
				}
				require.True(t, compared(f, fn), "%s: %s has no Output, so it is not run", dir, fn.Name.Name)
				name, _, _ := strings.Cut(strings.TrimPrefix(fn.Name.Name, "Example"), "_")
				shown[name] = true
				examples++
			}
			if examples > 0 {
				occurring(f, imports, "gopgas/"+dir, shown)
			}
		}
		for _, f := range src.files {
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range g.Specs {
					if s, isType := spec.(*ast.TypeSpec); isType && s.Name.IsExported() && !shown[s.Name.Name] {
						t.Errorf("%s.%s has no Example", dir, s.Name.Name)
					}
				}
			}
		}
	}
}

// compared reports whether a function has an Output comment.
func compared(f *ast.File, fn *ast.FuncDecl) bool {
	for _, c := range f.Comments {
		if c.Pos() > fn.Body.Pos() && c.End() < fn.Body.End() {
			text := strings.ToLower(c.Text())
			if strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:") {
				return true
			}
		}
	}
	return false
}

// occurring adds the names of the types of a package that occur in a file, written or as the type of an expression. The file is
// looked at alone: what it uses of other files of its tests is unknown, and does not matter.
func occurring(f *ast.File, imports types.Importer, pkg string, shown map[string]bool) {
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports, Error: func(error) {}}
	_, _ = config.Check(pkg+"_test", fset, []*ast.File{f}, &info) // its errors are those that Error was given
	add := func(o types.Object) {
		if n, ok := o.(*types.TypeName); ok && n.Pkg() != nil && n.Pkg().Path() == pkg {
			shown[n.Name()] = true
		}
	}
	for _, o := range info.Uses {
		add(o)
	}
	addType := func(of types.Type) {
		for of != nil {
			switch x := of.(type) {
			case *types.Pointer:
				of = x.Elem()
			case *types.Slice:
				of = x.Elem()
			case *types.Array:
				of = x.Elem()
			case *types.Alias:
				add(x.Obj())
				of = types.Unalias(x)
			case *types.Named:
				add(x.Obj())
				return
			default:
				return
			}
		}
	}
	for _, tv := range info.Types {
		addType(tv.Type)
	}
	for _, o := range info.Defs {
		if o != nil {
			addType(o.Type())
		}
	}
}

// compiled returns an importer of packages of the module, by what the compiler has written of them, and of all that they use.
func compiled(t *testing.T, dirs []string) types.Importer {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, d := range dirs {
		args = append(args, "./"+d)
	}
	out, err := goCommand(t, args...)
	require.NoError(t, err, "%s", out)
	files := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		path, file, _ := strings.Cut(lines.Text(), " ")
		files[path] = file
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}
